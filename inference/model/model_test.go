package model_test

import (
	"strings"
	"testing"

	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/model"
)

func TestEveryKnownModelHasALicenceAndASpokenDialect(t *testing.T) {
	for _, m := range model.Known() {
		if !strings.Contains(strings.Join(dialect.Names(), " "), m.Dialect) {
			t.Errorf("%s speaks %q, and no such dialect exists", m.ID, m.Dialect)
		}
		if m.Licence != "Apache-2.0" && m.Licence != "MIT" {
			t.Errorf("%s: is %s a licence under which a household may run it?", m.ID, m.Licence)
		}
	}
}

func TestTheDefaultModelIsFullyChecked(t *testing.T) {
	for _, m := range model.Known() {
		if m.Default && (m.SHA256 == "" || m.Size == 0) {
			t.Errorf("%s is the default and nobody has checked its file", m.ID)
		}
	}
}

func TestManifestMistakesAreErrors(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	good := "[[model]]\nid='m'\ntitle='M'\nlicence='MIT'\ndialect='gemma'\ncontext=1\ndefault=true\n"
	source := "url='https://e.example/m'\n"
	sized := "size=3\nsha256='" + digest + "'\n"
	part := "parts=[{wheel='a==1',sha256='" + digest + "',member='x',size=3}]\n"
	for name, tt := range map[string]struct{ text, want string }{
		"sound":                      {good + source, ""},
		"sound parts":                {good + sized + part, ""},
		"not toml":                   {"[[", "toml"},
		"unknown key":                {good + source + "colour='red'\n", "unknown key"},
		"no source":                  {good, "no source"},
		"plain http":                 {good + "url='http://e.example/m'\n", "not https"},
		"size alone":                 {good + source + "size=3\n", "come together"},
		"short checksum":             {good + source + "size=3\nsha256='abcd'\n", "64 lower-case"},
		"upper-case checksum":        {good + source + "size=3\nsha256='" + strings.ToUpper(digest) + "'\n", "64 lower-case"},
		"parts without the whole":    {good + part, "whole file's"},
		"parts of another size":      {good + "size=4\nsha256='" + digest + "'\n" + part, "3 bytes together"},
		"part outside its wheel":     {good + sized + strings.Replace(part, "'x'", "'../x'", 1), "incomplete"},
		"part without version":       {good + sized + strings.Replace(part, "a==1", "a", 1), "incomplete"},
		"id that is a path":          {strings.Replace(good, "'m'", "'../m'", 1) + source, "an id is"},
		"no default":                 {strings.Replace(good, "true", "false", 1) + source, "0 models are"},
		"two defaults":               {good + source + strings.Replace(good, "'m'", "'n'", 1) + source, "2 models are"},
		"one id twice":               {good + source + strings.Replace(good, "true", "false", 1) + source, "twice"},
		"no licence":                 {strings.Replace(good, "'MIT'", "''", 1) + source, "required"},
		"checksum of the wrong kind": {good + source + "size=3\nsha256=7\n", "toml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := model.ParseManifest([]byte(tt.text))
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
		})
	}
}
