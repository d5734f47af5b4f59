package scripted

import (
	"strings"

	"assent.home.arpa/inference/dialect"
)

// Token types of llama.cpp (enum llama_token_type).
const (
	normalToken  = 1
	controlToken = 3
	userToken    = 4 // found in any text, which is what makes the marks of some real vocabularies dangerous
)

// Marks that the machine itself knows.
const (
	turnEnd   = "<|im_end|>"
	dataClose = "</tool_response>"
	askWord   = "user"
)

type vocabulary struct {
	texts  []string // as the file spells them
	types  []int32
	merges []string
	ids    map[string]int // by plain text
}

func newVocabulary() *vocabulary {
	v := &vocabulary{ids: map[string]int{}}
	for b := range 256 {
		v.add(string([]byte{byte(b)}), normalToken)
	}
	for _, word := range strings.Split(words, ",") {
		v.merge(word)
		v.merge(" " + word)
	}
	for _, name := range []string{"<|endoftext|>", "<|im_start|>", turnEnd, dialect.ScriptedMark} {
		v.add(name, controlToken)
	}
	for _, mark := range []string{"<tool_call>", "</tool_call>", "<tool_response>", dataClose, "<think>", "</think>"} {
		v.add(mark, userToken)
	}
	return v
}

// words are what prompts are full of. The first must be askWord: earlier merges win, so it is one token wherever it stands.
const words = askWord + ",assistant,system,tool,the,and,you,are,for,with,name,arguments,function,functions,type,object,properties,string," +
	"description,parameters,required,version,additionalProperties,false,true,query,json,within,tags,XML,call,each,return,provided," +
	"signatures,more,may,one,assist,Tools,web,search,health,box,of,to,in,is,it,this,that,what,home,Assent,Search,result,status,code,stage"

// add returns the id of a new token.
func (v *vocabulary) add(text string, kind int32) int {
	id := len(v.texts)
	spelt := text
	if kind == normalToken {
		spelt = spell(text)
	}
	v.texts, v.types = append(v.texts, spelt), append(v.types, kind)
	v.ids[text] = id
	return id
}

// merge teaches the tokenizer a word, one byte more at a time.
func (v *vocabulary) merge(word string) {
	for n := 2; n <= len(word); n++ {
		if _, ok := v.ids[word[:n]]; ok {
			continue
		}
		v.merges = append(v.merges, spell(word[:n-1])+" "+spell(word[n-1:n]))
		v.add(word[:n], normalToken)
	}
}

// cut divides a text at white space into pieces that are new to the vocabulary and differ from each other: the engine
// aborts on a token that is listed twice, and a bigram machine has one successor for each. A piece that is not new takes
// in the next one, or at the end the one before. It returns nil where even the whole text is not new.
func (v *vocabulary) cut(text string) []string {
	taken := map[string]bool{}
	isNew := func(s string) bool {
		_, ok := v.ids[s]
		return !ok && !taken[s]
	}
	var pieces []string
	rest := ""
	for _, word := range splitWords(text) {
		if rest += word; isNew(rest) {
			taken[rest] = true
			pieces = append(pieces, rest)
			rest = ""
		}
	}
	for rest != "" {
		if len(pieces) == 0 {
			return nil
		}
		last := pieces[len(pieces)-1]
		pieces = pieces[:len(pieces)-1]
		delete(taken, last)
		if rest = last + rest; isNew(rest) {
			pieces = append(pieces, rest)
			rest = ""
		}
	}
	return pieces
}

// splitWords cuts before each run of white space.
func splitWords(text string) []string {
	var out []string
	from := 0
	for i := 1; i < len(text); i++ {
		if space(text[i]) && !space(text[i-1]) {
			out = append(out, text[from:i])
			from = i
		}
	}
	return append(out, text[from:])
}

func space(c byte) bool { return c == ' ' || c == '\n' }

// spell writes bytes as GPT-2's byte-level tokenizer does: printable Latin-1 as itself, the other bytes from U+0100 on.
func spell(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(byteRune(s[i]))
	}
	return b.String()
}

func byteRune(c byte) rune {
	shown := func(c int) bool { return c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE && c <= 0xFF }
	if shown(int(c)) {
		return rune(c)
	}
	r := rune(256)
	for i := range int(c) {
		if !shown(i) {
			r++
		}
	}
	return r
}
