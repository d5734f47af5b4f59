package websearchtest_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"assent.home.arpa/capabilities/websearch/websearchtest"
)

func ask(t *testing.T, site http.Handler, query string) (titles, snippets []string) {
	t.Helper()
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/w/api.php?action=query&list=search&format=json&formatversion=2&srlimit=5&srsearch="+url.QueryEscape(query), nil))
	var a struct {
		Query struct {
			Search []struct{ Title, Snippet string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Query.Search {
		titles, snippets = append(titles, r.Title), append(snippets, r.Snippet)
	}
	return titles, snippets
}

func TestBestArticleComesFirstAndSaysTheAnswer(t *testing.T) {
	site := websearchtest.New()
	for query, want := range map[string]struct{ title, says string }{
		"how tall is the Eiffel tower":                {"Eiffel Tower", "330"},
		"Eiffel tower height":                         {"Eiffel Tower", "330"},
		"how long to boil an egg":                     {"Boiled egg", "6 minutes"},
		"height of mount everest":                     {"Mount Everest", "8,849"},
		"distance from earth to the moon":             {"Moon", "384,400"},
		"how many moons does mars have":               {"Mars", "Phobos"},
		"how long should green tea brew":              {"Tea", "70 to 80"},
		"feeding a sourdough starter":                 {"Sourdough", "week"},
		"are there penguins at the north pole":        {"Penguin", "North Pole"},
		"get candle wax out of a tablecloth":          {"Candle wax stain", "iron"},
		"was 1900 a leap year":                        {"Leap year", "1900 was not"},
		"how heavy is the heart of a blue whale":      {"Blue whale", "180 kilograms"},
		"water for cooking white rice":                {"Rice", "one and a half cups"},
		"how much water does a modern dishwasher use": {"Dishwasher", "10 litres"},
	} {
		titles, snippets := ask(t, site, query)
		if len(titles) == 0 || titles[0] != want.title {
			t.Errorf("%s: %v", query, titles)
			continue
		}
		plain := strings.NewReplacer(`<span class="searchmatch">`, "", "</span>", "").Replace(snippets[0])
		if !strings.Contains(plain, want.says) {
			t.Errorf("%s: %s", query, plain)
		}
	}
}

func TestNothingMatchesNothing(t *testing.T) {
	for _, query := range []string{"", "zyzzyva", "the of is", "🙂"} {
		if titles, _ := ask(t, websearchtest.New(), query); len(titles) > 0 {
			t.Errorf("%q: %v", query, titles)
		}
	}
}

func TestSnippetsAreMarkedAndEscaped(t *testing.T) {
	_, snippets := ask(t, websearchtest.New(), "honey bees sting")
	if len(snippets) == 0 || !strings.Contains(snippets[0], `<span class="searchmatch">`) {
		t.Fatalf("%q", snippets)
	}
}

func TestServesUntilTheEnd(t *testing.T) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- websearchtest.New().Serve(ctx, l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/wiki/Eiffel_Tower")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(page), "330 metres") {
		t.Errorf("%s, %v", page, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
