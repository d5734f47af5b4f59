package main

import (
	"encoding/base64"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/phone/phonetest"
	"assent.home.arpa/appliance/wire"
)

// A computer that asks keeps the newest seal, in a file that verify takes, and warns where the record shrank.
func TestAskKeepsAnAnchorAndWarnsOfARollback(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	serve := func(head uint64) string {
		seal := base64.RawURLEncoding.EncodeToString(audittest.KeptSeal(audit.Seq(head), 1))
		box := httptest.NewServer(&phonetest.Box{Replies: map[wire.Type][]wire.Downstream{
			wire.TypePair:  {{Type: wire.TypePaired, Data: wire.Paired{Slot: 1, Name: "Desk"}}},
			wire.TypeHello: {{Type: wire.TypeWelcome, Data: wire.Welcome{Name: "Desk", Seal: seal, HeadSeq: head, Root: strings.Repeat("ab", 32)}}},
			wire.TypeAsk:   {{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "complete"}}},
		}})
		t.Cleanup(box.Close)
		return box.URL
	}
	status, out, errs := assent(t, "pair", serve(900), "123456")
	if status != 0 || strings.Contains(errs, "warning") {
		t.Fatalf("pair: exit %d: %s", status, errs)
	}
	if !regexp.MustCompile(`the box must show \d{4} \d{4} \d{4} and "`).MatchString(errs) {
		t.Errorf("nothing to compare with the box: %s", errs)
	}
	if !strings.Contains(out, "key of the box's record: SHA-256 "+strings.Repeat("ab", 32)+"\n") {
		t.Errorf("the key to be noted is not shown: %s", out)
	}
	anchors, err := readAnchors(filepath.Join(config, "assent", "anchor.txt"))
	if err != nil || len(anchors) != 1 || anchors[0][0] != coseTag {
		t.Errorf("verify reads %v, %v", anchors, err)
	}
	if status, _, errs := assent(t, "ask", "anything?"); status != 0 || strings.Contains(errs, "warning") {
		t.Errorf("exit %d: %s", status, errs)
	}

	identity := filepath.Join(config, "assent", "identity.json")
	b, err := os.ReadFile(identity)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(b), `"address":"`)
	_, after, _ := strings.Cut(string(b)[len(before)+len(`"address":"`):], `"`)
	if err := os.WriteFile(identity, []byte(before+`"address":"`+serve(12)+`"`+after), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // to be told once does not make it good
		status, _, errs := assent(t, "ask", "anything?")
		if status != 0 || !strings.Contains(errs, "warning: this box's record is shorter than it was on") || !strings.Contains(errs, "901 records then, and 13 now") {
			t.Errorf("exit %d: %s", status, errs)
		}
	}
}
