package dialect

import (
	"fmt"
	"strings"
)

// Grammar returns a GBNF (llama.cpp's grammars/README.md) that keeps the envelope of a call well-formed: any prose, and
// after each CallOpen one JSON object {"name":string,"arguments":object} and CallClose. It knows no name and no value,
// and it lets the model write as many calls as it likes: what may be done is decided elsewhere, by refusing.
//
// Prose is "text without CallOpen", which GBNF can only say as an automaton: rule p0 has seen nothing of the mark, p1 its
// first character, and so on. A mark whose first character does not come again in it, as all of ours are, can only begin
// anew at that character.
func (d Dialect) Grammar() string {
	mark := d.CallOpen
	first := mark[0]
	var b strings.Builder
	b.WriteString("root ::= p0\n")
	for i := range len(mark) {
		next := fmt.Sprintf("p%d", i+1)
		if i == len(mark)-1 {
			next = "call"
		}
		if i == 0 {
			fmt.Fprintf(&b, "p0 ::= (%s p1 | [^%s] p0)?\n", literal(mark[:1]), class(first))
			continue
		}
		fmt.Fprintf(&b, "p%d ::= (%s %s | %s p1 | [^%s%s] p0)?\n", i, literal(mark[i:i+1]), next, literal(mark[:1]), class(first), class(mark[i]))
	}
	fmt.Fprintf(&b, "call ::= s \"{\\\"name\\\":\" s string \",\" s \"\\\"arguments\\\":\" s object \"}\" s %s p0\n", literal(d.CallClose))
	b.WriteString(`object ::= "{" s (string ":" s value ("," s string ":" s value)*)? s "}"
array ::= "[" s (value ("," s value)*)? s "]"
value ::= object | array | string | number | "true" | "false" | "null"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
s ::= [ \n]?
`)
	return b.String()
}

func literal(s string) string { return fmt.Sprintf("%q", s) }

// class escapes c for use inside a character class.
func class(c byte) string { return fmt.Sprintf(`\x%02X`, c) }
