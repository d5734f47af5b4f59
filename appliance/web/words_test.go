package web_test

import (
	"os"
	"regexp"
	"testing"
)

// A code is for programs. A person reads words, so the page has some for every code that the box knows.
func TestThePageHasWordsForEveryCode(t *testing.T) {
	source, err := os.ReadFile("../../capabilities/outcome.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+ .*?= "(\w+)"|^\tCode\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 30 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	words := get(t, "/js/words.js").Body.String()
	for _, c := range codes {
		code := c[1] + c[2]
		if !regexp.MustCompile(`(?m)^  ` + code + `: '|'` + code + `'`).MatchString(words) {
			t.Errorf("no words for %s", code)
		}
	}
}
