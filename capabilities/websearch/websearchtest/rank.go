package websearchtest

import (
	"html"
	"math"
	"slices"
	"strings"
	"unicode"
)

// hit is one article that matches a query.
type hit struct {
	article
	score   float64
	snippet string // HTML, the matches marked as MediaWiki marks them
}

// index ranks articles by BM25 (Robertson and Zaragoza 2009, with k1 1.2 and b 0.75), a match in the title counting thrice.
type index struct {
	articles []article
	words    []map[string]float64 // weighted frequency by word, for each article
	length   []float64
	mean     float64
	holds    map[string]float64 // number of articles that hold a word
}

func newIndex(articles []article) *index {
	x := &index{articles: articles, holds: map[string]float64{}}
	for _, a := range articles {
		freq := map[string]float64{}
		for _, w := range words(a.text) {
			freq[w]++
		}
		for _, w := range words(a.title) {
			freq[w] += 3
		}
		n := 0.0
		for w, f := range freq {
			x.holds[w]++
			n += f
		}
		x.words, x.length, x.mean = append(x.words, freq), append(x.length, n), x.mean+n/float64(len(articles))
	}
	return x
}

// search returns at most limit articles that hold a word of the query, the best first.
func (x *index) search(query string, limit int) []hit {
	asked := words(query)
	var hits []hit
	for i, a := range x.articles {
		score := 0.0
		for _, w := range asked {
			f := x.words[i][w]
			score += x.rarity(w) * f * 2.2 / (f + 1.2*(0.25+0.75*x.length[i]/x.mean))
		}
		if score > 0 {
			hits = append(hits, hit{a, score, x.snippet(a.text, asked)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return hits[:min(limit, len(hits))]
}

// rarity is a word's weight. Words in half of the articles or more ("the", "is") have none, as if they were stop words.
func (x *index) rarity(word string) float64 {
	n := x.holds[word]
	if n >= float64(len(x.articles))/2 {
		return 0
	}
	return math.Log(1 + (float64(len(x.articles))-n+0.5)/(n+0.5))
}

// snippet is the two neighbouring sentences that match the query best.
func (x *index) snippet(text string, asked []string) string {
	sentences := strings.SplitAfter(text, ". ")
	worth := func(s string) (sum float64) {
		for _, w := range unique(words(s)) {
			if slices.Contains(asked, w) {
				sum += x.rarity(w)
			}
		}
		return sum
	}
	best, at := -1.0, 0
	for i := range sentences {
		w := worth(sentences[i])
		if i+1 < len(sentences) {
			w += worth(sentences[i+1])
		}
		if w > best {
			best, at = w, i
		}
	}
	return mark(strings.TrimSpace(strings.Join(sentences[at:min(at+2, len(sentences))], "")), asked)
}

// mark escapes text and puts MediaWiki's marker round each word of the query.
func mark(text string, asked []string) string {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(text)
		}
		if word := text[:end]; end > 0 && slices.Contains(asked, stem(word)) {
			b.WriteString(`<span class="searchmatch">` + html.EscapeString(word) + `</span>`)
		} else {
			b.WriteString(html.EscapeString(word))
		}
		gap := strings.IndexFunc(text[end:], inWord)
		if gap < 0 {
			gap = len(text) - end
		}
		b.WriteString(html.EscapeString(text[end : end+gap]))
		text = text[end+gap:]
	}
	return b.String()
}

func words(s string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !inWord(r) }) {
		out = append(out, stem(w))
	}
	return out
}

// stem folds case and the commonest English endings, so that "eggs" finds "egg" and "boiling" finds "boil".
func stem(w string) string {
	w = strings.ToLower(w)
	for _, end := range []string{"ing", "ed", "es", "s", "e"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 3 {
			return cut
		}
	}
	return w
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
