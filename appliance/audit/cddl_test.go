package audit_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/confirm/receipt"
)

// audit.cddl names the same fields under the same keys, and as optional what the code leaves out.
func TestTheCDDLSaysWhatTheCodeDoes(t *testing.T) {
	b, err := os.ReadFile("audit.cddl")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	field := regexp.MustCompile(`(?m)^  (\? )?(\d+): [^;]*; ([a-z0-9-]+)`)
	for _, rule := range regexp.MustCompile(`(?ms)^([a-z-]+) = \{\n(.*?)^\}`).FindAllStringSubmatch(string(b), -1) {
		for _, f := range field.FindAllStringSubmatch(rule[2], -1) {
			rules[rule[1]] = append(rules[rule[1]], f[1]+f[2]+" "+f[3])
		}
	}
	check := func(rule string, of reflect.Type) {
		t.Helper()
		var want []string
		for i := range of.NumField() {
			f := of.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			if !f.IsExported() {
				continue
			}
			optional := ""
			if strings.Contains(options, "omit") {
				optional = "? "
			}
			want = append(want, optional+key+" "+audit.Kebab(f.Name))
		}
		if d := cmp.Diff(want, rules[rule]); d != "" {
			t.Errorf("%s: %s", rule, d)
		}
	}
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		check(k.String(), reflect.TypeOf(audit.Blank(k)).Elem())
	}
	check("step", reflect.TypeFor[audit.PanelStep]())
	check("genesis-claims", reflect.TypeFor[audit.GenesisClaims]())
	check("seal-claims", reflect.TypeFor[audit.SealClaims]())
	check("receipt-claims", reflect.TypeFor[receipt.Claims]())
}

func TestNamesOfFieldsAreReadable(t *testing.T) {
	got := audit.Fields(audit.EffectRecord{HTTPStatus: 404, ResultBytes: 7})
	want := []audit.Field{{Name: "result-bytes", Value: uint64(7)}, {Name: "http-status", Value: uint16(404)}}
	// Status is required by the format and says nothing here.
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if audit.Fields(nil) != nil {
		t.Error("a redacted record has fields")
	}
}
