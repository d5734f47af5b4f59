package executor_test

import (
	"testing"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/health"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/capabilities/websearch"
)

// TestProductAdaptersPassTheirOwnRules: what the box ships is registered, rendered, shown and granted without exception.
func TestProductAdaptersPassTheirOwnRules(t *testing.T) {
	for _, endpoint := range []string{"https://en.wikipedia.org/w/api.php", "http://192.168.1.5:8080/w/api.php", "http://127.0.0.1:4711/w/api.php"} {
		b := newBox(t)
		search, err := websearch.MediaWiki(endpoint, "Wikipedia")
		if err != nil {
			t.Fatal(err)
		}
		reg, err := registry.New(health.Adapter{}, search)
		if err != nil {
			t.Fatal(err)
		}
		b.registry = reg
		b = rebuilt(t, b, b.desk)
		turn := b.turn(adult(), executor.NewConversation(nil))
		b.want(b.invoke(turn, "system_health__v1", "{}"), capabilities.StageExecute, capabilities.Done, "")
		b.want(b.invoke(turn, "web_search__v1", `{"query":"how tall is the Eiffel tower?"}`), capabilities.StageExecute, capabilities.Done, "")
		if n := len(b.desk.requests()); n != 1 {
			t.Errorf("%s: the panel showed %d cards", endpoint, n)
		}
		b.records()
	}
}
