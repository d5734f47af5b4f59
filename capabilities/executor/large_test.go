package executor_test

import (
	"testing"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/confirm/screen"
)

// TestLargeCards: what the configuration asks for is what the person reads, and what the receipt is bound to.
func TestLargeCards(t *testing.T) {
	b := newBox(t, func(c *executor.Config) { c.Large = true })
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
	asked := b.desk.requests()
	if len(asked) != 1 || !asked[0].Card.Large {
		t.Fatalf("the card is not large: %+v", asked)
	}
	plain := asked[0].Card
	plain.Large = false
	big, err := screen.Pages(asked[0].Card)
	if err != nil {
		t.Fatal(err)
	}
	small, err := screen.Pages(plain)
	if err != nil {
		t.Fatal(err)
	}
	if len(big) <= len(small) || screen.Digest(big) == screen.Digest(small) {
		t.Errorf("%d large pages, %d plain ones", len(big), len(small))
	}
}
