package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"assent.home.arpa/inference/internal/strictjson"
)

func TestCheckAcceptsOnlyWhatHasOneReading(t *testing.T) {
	good := []string{
		`{}`, ` {"a":[1,-0,0.5,1e3,1E-3,true,false,null,"x"]} `, `"\ud83e\udd94 \u00e9 \" \\ \/ \b\f\n\r\t"`,
		`9007199254740993`, `{"a":{"a":1}}`, strings.Repeat("[", 32) + strings.Repeat("]", 32), `"\u0000"`,
	}
	for _, s := range good {
		if err := strictjson.Check([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	bad := map[string]string{
		"nothing":          ``,
		"two values":       `{} {}`,
		"single quotes":    `{'a':1}`,
		"python words":     `{"a":True}`,
		"trailing comma":   `{"a":1,}`,
		"trailing comma 2": `[1,]`,
		"comment":          `{"a":1/*x*/}`,
		"leading zero":     `01`,
		"plus":             `+1`,
		"bare point":       `1.`,
		"no digits":        `1e`,
		"overflow":         `1e999`,
		"negative huge":    `-1e999`,
		"not a number":     `NaN`,
		"cut string":       `{"a":"b`,
		"cut escape":       `"\`,
		"cut object":       `{"a":1`,
		"no colon":         `{"a" 1}`,
		"unquoted key":     `{a:1}`,
		"raw newline":      "\"a\nb\"",
		"raw NUL":          "\"\x00\"",
		"bad escape":       `"\x41"`,
		"short escape":     `"\u12"`,
		"signed escape":    `"\u+123"`,
		"lone high":        `"\ud800"`,
		"lone low":         `"\udc00"`,
		"high twice":       `"\ud800\ud800"`,
		"high and text":    `"\ud800x"`,
		"invalid utf-8":    "\"\xff\"",
		"surrogate bytes":  "\"\xed\xa0\x80\"",
		"byte order mark":  "\ufeff{}",
		"no-break space":   "{\u00a0}",
		"33 deep":          strings.Repeat("[", 33) + strings.Repeat("]", 33),
		"10,000 deep":      strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000),
	}
	for name, s := range bad {
		var syntax *strictjson.SyntaxError
		if err := strictjson.Check([]byte(s)); !errors.As(err, &syntax) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, s := range []string{`{"a":1,"a":1}`, `{"b":[{"a":1,"\u0061":2}]}`} {
		if err := strictjson.Check([]byte(s)); !errors.Is(err, strictjson.ErrDuplicateKey) {
			t.Errorf("%s: got %v", s, err)
		}
	}
}

func TestObjectKeepsTheBytesOfItsValues(t *testing.T) {
	got, err := strictjson.Object([]byte(` { "n" : 9007199254740993 , "q":{ "a" : "\u00e9" }, "n2": [ 1 ] } `))
	if err != nil {
		t.Fatal(err)
	}
	want := []strictjson.Member{{"n", []byte(`9007199254740993`)}, {"q", []byte(`{ "a" : "\u00e9" }`)}, {"n2", []byte(`[ 1 ]`)}}
	for i, m := range want {
		if got[i].Key != m.Key || !bytes.Equal(got[i].Value, m.Value) {
			t.Errorf("member %d is %q: %s", i, got[i].Key, got[i].Value)
		}
	}
	for _, s := range []string{`[]`, `null`, `1`, `"{}"`} {
		if _, err := strictjson.Object([]byte(s)); err == nil {
			t.Errorf("%s passed as an object", s)
		}
	}
}

func TestArrayKeepsTheBytesOfItsElements(t *testing.T) {
	got, err := strictjson.Array([]byte(` [ { "a" : 1 } ,2, [ ] ] `))
	if err != nil || len(got) != 3 || string(got[0]) != `{ "a" : 1 }` || string(got[1]) != "2" || string(got[2]) != "[ ]" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, s := range []string{`{}`, `null`, `[1,]`, `[1][2]`, ``} {
		if _, err := strictjson.Array([]byte(s)); err == nil {
			t.Errorf("%q passed as an array", s)
		}
	}
}

func TestCanonicalFormDependsOnTheValueAlone(t *testing.T) {
	const want = `{"":"\u0001\n\"\\é/","a":[1.50,{"x":9007199254740993,"y":null}],"ü":true}`
	for _, s := range []string{
		` { "ü" : true, "a":[ 1.50 , {"y":null,"x":9007199254740993}] , "":"\u0001\u000a\u0022\\\u00e9\/" } `,
		want,
	} {
		got, err := strictjson.Canonical([]byte(s))
		if err != nil || string(got) != want {
			t.Errorf("got %s (%v)\nwant %s", got, err, want)
		}
	}
}

// Whatever passes must be valid for everybody else too, and its canonical form must be a fixed point with the same value.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"\ud83e\udd94"}]}`, `{"a":1,"a":2}`, `1e999`, `"\ud800"`, `[[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strictjson.Check(data) != nil {
			return
		}
		var before, after any
		if err := json.Unmarshal(data, &before); err != nil {
			t.Fatalf("accepted what encoding/json rejects: %v", err)
		}
		c, err := strictjson.Canonical(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(c, &after); err != nil {
			t.Fatalf("canonical form is invalid: %v", err)
		}
		b, _ := json.Marshal(before)
		a, _ := json.Marshal(after)
		if !bytes.Equal(a, b) {
			t.Fatalf("canonical form changed the value: %s, %s", b, a)
		}
		again, err := strictjson.Canonical(c)
		if err != nil || !bytes.Equal(again, c) {
			t.Fatalf("not a fixed point: %s, %s", c, again)
		}
	})
}
