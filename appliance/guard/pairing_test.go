package guard_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

func TestPhoneNames(t *testing.T) {
	existing := []string{"Kitchen", "Anna's phone"}
	for _, name := range []string{"Living room", "Ben", "Телефон", "Zoë 2", "Dr. O'Neil_3", strings.Repeat("n", 24)} {
		if err := guard.CheckName(name, existing...); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", " ", " Ben", "Ben ", "  ✓ APPROVED ", "✓ Ben", "APPROVED", "approved", "Denied", "Next  Request", "0wner",
		strings.Repeat("n", 25), strings.Repeat("n", 200), "Ben\n", "B\u202een", "Be\u200bn", "Ben\u00a0", "12345", "🙂",
		"Ben!", "Ben: yes", "Ben/Anna", "<Ben>", "1234 5678 9012 Kitchen", "Kitchen 1234", "K1i2t3c4hen",
		"Kitchen", "kitchen", "KITCHEN", "Kltchen", "K1tchen", "Kit chen", "Kіtchen", "Кitchen", "kitcheη", "Annas phone", "Anna.s-phone", "Ännas Phone",
	} {
		if err := guard.CheckName(name, existing...); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

// TestPanelShowsWhoseKeyItIs: a gateway that keeps the name and sends another key shows another number than the phone.
func TestPanelShowsWhoseKeyItIs(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		for _, role := range []ipc.Role{ipc.RoleOwner, ipc.RoleAdult} {
			code, honest, evil := h.pairingCode(), newPhone(t).point(t), newPhone(t).point(t)
			name := map[ipc.Role]string{ipc.RoleOwner: "Kitchen", ipc.RoleAdult: "Garden"}[role]
			drawn := func(key []byte) []byte {
				title, text := guard.PairPrompt(wire.KeyCode(code, key), role)
				pages, err := screen.AdminPages(title, text, false, name)
				if err != nil || len(pages) != 1 {
					t.Fatalf("%d pages, %v", len(pages), err)
				}
				for _, part := range []string{wire.KeyCode(code, key), "becomes " + role.String()} {
					if !strings.Contains(text, part) {
						t.Errorf("the prompt %q lacks %q", text, part)
					}
				}
				return pages[0].Frame[:device.Width*7]
			}
			shown := func(key []byte, gesture func()) []byte {
				done := make(chan struct{})
				go func() {
					defer close(done)
					h.gateway.Call(context.Background(), &ipc.Pair{Code: code, Name: name, Key: key}, nil)
				}()
				h.hands.Wait(3 * time.Second)
				glass := h.panel.Glass()
				gesture()
				<-done
				h.hands.Wait(4 * time.Second)
				return glass[:device.Width*7]
			}
			if glass := shown(evil, func() { h.hands.Tap(device.Deny) }); bytes.Equal(glass, drawn(honest)) || !bytes.Equal(glass, drawn(evil)) {
				t.Error("the glass does not show the gateway's key")
			}
			if glass := shown(honest, func() { h.hands.HoldBoth(4 * time.Second) }); !bytes.Equal(glass, drawn(honest)) {
				t.Error("the glass does not show the phone's key, or not what it becomes")
			}
		}
	})
}

// TestPhoneNamesThatImitate tries names beside the one that they imitate, in both orders, and words that the panel says itself.
func TestPhoneNamesThatImitate(t *testing.T) {
	for _, pair := range [][2]string{
		{"Kɑte", "Kate"},
		{"Olɡa", "Olga"},
		{"Biłł", "Bill"},
		{"Anȷa", "Anja"},
		{"Kitcheɳ", "Kitchen"},
		{"Kitchɘn", "Kitchen"},
		{"Mɪra", "Mira"},
		{"Nĸe", "Nke"},
		{"Аппа", "Anna"},
		{"Beʼn", "Be'n"},
		{"Đad", "Dad"},
		{"Maŗk", "Mark"},
		{"Luıs", "Luis"},
		{"Pɑpɑ", "Papa"},
		{"Ɩan", "Ian"},
		{"Wɩll", "Will"},
		{"Soƒia", "Sofia"},
		{"Jørg", "Jorg"},
		{"Ħannah", "Hannah"},
		{"Þam", "Pam"},
		{"Я0sa", "Rosa"},
		{"Μum", "Mum"},
		{"Вill", "Bill"},
		{"Ælla", "Aella"},
		{"Łisa", "Lisa"},
		{"Toŋi", "Toni"},
	} {
		if guard.CheckName(pair[0], pair[1]) == nil {
			t.Errorf("%q was accepted beside %q", pair[0], pair[1])
		}
		if guard.CheckName(pair[0]) == nil && guard.CheckName(pair[1], pair[0]) == nil {
			t.Errorf("%q was accepted beside %q", pair[1], pair[0])
		}
	}
	for _, name := range []string{
		"Approved now", "Hold to approve", "The box", "Assent update", "Grandma's-Tablet Refuses", "Tap to read", "Test. Ignore",
		"Next page", "Change of the box", "Hold both", "Owner phone", "Press. close", "Mum_approves", "Аpproved by Mum", "Kitchen re-fused OK",
		"Re fused", "App roved", "becomes owner", "Adult", "Øwner 2", "Đenied",
	} {
		if guard.CheckName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	for _, name := range []string{
		"Mum's phone", "Grandma's tablet", "Jürgen", "Łukasz", "Đorđe", "Søren", "Þór", "Nguyễn Thị Ánh", "İpek", "Şükrü", "Μαρία", "Наталія",
		"Zoë's iPad", "Office PC 2", "Bill", "Kate", "Will", "Xbox", "Kitchen", "Living-room TV",
	} {
		if err := guard.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// among puts letters into a name of their script that looks the same in each.
func among(letters string) string {
	r, _ := utf8.DecodeRuneInString(letters)
	switch {
	case unicode.Is(unicode.Greek, r):
		return "κο" + letters + "οχ"
	case unicode.Is(unicode.Cyrillic, r):
		return "ко" + letters + "ох"
	}
	return "ko" + letters + "ox"
}

// TestPhoneNamesOfUnicodesTwins tries every pair of Unicode's confusables (UTS #39, revision of Unicode 16) of which both are
// letters or digits that a name may have, and what is one name but for case.
func TestPhoneNamesOfUnicodesTwins(t *testing.T) {
	for _, twins := range strings.Fields(`
		0=O 1=l 3=З 6=б A=Α A=А AE=Æ B=Β B=В C=С E=Ε E=Е H=Η H=Н I=l J=Ј K=Κ K=К M=Μ M=М N=Ν O=Ο O=О OE=Œ P=Ρ P=Р S=Ѕ
		T=Τ T=Т X=Χ X=Х Y=Υ Y=У Z=Ζ a=α a=а ae=æ b=Ь bl=Ы c=с e=е i=ı i=ι i=і ij=ĳ j=ј l=Ι l=І lJ=Ĳ lO=Ю m=rn o=ο o=σ
		o=о oe=œ p=ρ p=р r=г s=ѕ u=υ v=ν x=х y=γ y=у Ö=Ő ß=β Ĕ=Ě ĕ=ě Ţ=Ț Γ=Г Π=П Φ=Ф π=п Ѝ=Й й=ѝ
		ß=ss ς=σ ẞ=ß Λ=Л λ=л Δ=Д π=n ю=io`) {
		one, other, _ := strings.Cut(twins, "=")
		a, b := among(one), among(other)
		for _, name := range []string{a, b} {
			if err := guard.CheckName(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if guard.CheckName(a, b) == nil || guard.CheckName(b, a) == nil {
			t.Errorf("%q was accepted beside %q", a, b)
		}
	}
}

func TestPhoneNamesAreOfOneScript(t *testing.T) {
	for _, name := range []string{
		"ΛNNΛ", "ИIИA", "ΣVA", "ΩLGA", "ΔNNΔ", "KЛTE", "ROLГ", "ГIM", "ξenia", "Лena", "ЦISA", "VEЯA", "iPhone Ивана", "Ελένη Ивановна",
		"Mum 2 и", "ΛPPROVED", "DΣNIED", "DEИIED", "APPRФVED",
	} {
		if err := guard.CheckName(name); err == nil || !strings.Contains(err.Error(), "alphabet") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"Åsa", "Zoë's phone", "Ángel", "Œuvre", "Иван", "Ελένη", "O'Neill", "Mum-2", "Телефон 2", "Ирина-Анна", "Τηλέφωνο_3", "D'Arcy",
		"Jean-Luc", "St. John", "Nguyễn", "Ђорђе", "Їжак", "Ольга", "Юлия", "Фёдор", "Щукин", "Νίκος", "Ζωή", "Γιώργος", "Ξένια", "Ωραία",
		"Андрей", "Тимофей", "Татьяна", "Борис", "Костя", "Соня", "Папа", "Мама", "Бабушка", "Кухня", "Гостиная", "Δημήτρης", "Κώστας",
		"Μαμά", "Βασίλης", "Σοφία", "Cancellara", "Changez", "Tapper", "Booker", "Paget", "Masako", "Cassandra", "Will", "Mark", "Yesim",
		"Oksana", "Baskets", "Allowyn", "Cableguy", "Scott", "Testa",
	} {
		if err := guard.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestPhoneNamesOfAnotherScriptThatImitate: whole names that stay within a script, beside those that their outlines suggest.
func TestPhoneNamesOfAnotherScriptThatImitate(t *testing.T) {
	for _, pair := range [][2]string{
		{"HANNA", "НАННА"},
		{"kim", "кіт"},
		{"NINA", "ИІИА"},
		{"ANNA", "ΛΝΝΛ"},
		{"ANNA", "ΔΝΝΔ"},
		{"ANNA", "ДИИД"},
		{"ANNA", "ЛИИЛ"},
		{"EVA", "ΣΥΑ"},
		{"EVA", "Ξνα"},
		{"TIM", "ГІМ"},
		{"Tim", "Γιμ"},
		{"ROLF", "ЯОЦГ"},
		{"OTTO", "ΩΤΤΩ"},
		{"NORA", "ИОЯА"},
		{"mia", "тіа"},
		{"Kate", "КДТЕ"},
		{"xenia", "ξενια"},
		{"Marna", "Мама"},
		{"Clara", "дага"},
		{"Mama", "Μαμά"},
		{"Тома", "Τομα"},
		{"ДИИД", "ΛΝΝΛ"},
		{"lia", "гіа"},
		{"zoe", "зое"},
		{"Torni", "Готі"},
		{"Clio", "сгіо"},
		{"ANNA 1", "ΛΝΝΛ l"},
		{"ANNA 2", "ДИИД-2"},
		{"ANNA", "ΛNNΛ"},
		{"NINA", "ИIИA"},
	} {
		for i, name := range pair {
			other := pair[1-i]
			if guard.CheckName(name, other) == nil {
				t.Errorf("%q was accepted beside %q", name, other)
			}
		}
	}
	for _, pair := range [][2]string{
		{"Лина", "Дина"},
		{"Маша", "Даша"},
		{"Саша", "Паша"},
		{"Толя", "Коля"},
		{"Anna", "Hanna"},
		{"Ivan", "Иван"},
		{"Elena", "Ελένη"},
		{"Olga", "Ольга"},
		{"Tim", "Tom"},
		{"Νίκος", "Κώστας"},
		{"Ben", "ΛNNΛ"},
		{"Лена", "Ελένη"},
		{"Eva", "Ева 2"},
	} {
		for i, name := range pair {
			if err := guard.CheckName(name, pair[1-i]); err != nil && name != "ΛNNΛ" {
				t.Errorf("%q beside %q: %v", name, pair[1-i], err)
			}
		}
	}
}

// TestPhoneNamesAreNoWordsOfTheBox tries its words taken apart, within others, and in other scripts, and other words for yes.
func TestPhoneNamesAreNoWordsOfTheBox(t *testing.T) {
	for _, name := range []string{
		"Mum app-roves", "Mum ap prov.es it", "app roved", "It is O K", "It is O'K", "O_K", "So o-k", "MumApproves", "IsConfirmed", "xREFUSEDx",
		"Κ ΟΚ", "ОК", "Папа О К", "ΒΟΧ", "ТАР", "ΤΣΧΤ",
		"ALLOW", "allowed", "Accept", "Accepted", "yes", "Yes - Mum", "Agreed", "Okay", "Checked", "Cable", "Eject", "read-only", "Trust", "Delete", "Let's go",
	} {
		if guard.CheckName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

// TestPhoneKeepsItsName: a phone stays whose name no phone would get today.
func TestPhoneKeepsItsName(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Ben")
		path := filepath.Join(h.opts.StateDir, "phones.json")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		renamed := bytes.ReplaceAll(b, []byte(`"Ben"`), []byte(`"ΛNNΛ"`))
		if bytes.Equal(renamed, b) {
			t.Fatalf("no name in %s", b)
		}
		if err := os.WriteFile(path, renamed, 0o600); err != nil {
			t.Fatal(err)
		}
		h.restart()
		if h.turn(p, ipc.ID{1}) == (ipc.ID{}) {
			t.Error("the phone is not known any more")
		}
	})
}

func TestPairingNeedsTheCodeAndTheBox(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := newPhone(t)
		key := p.point(t)
		pair := func(code, name string, key []byte) <-chan *ipc.PairReply {
			done := make(chan *ipc.PairReply, 1)
			go func() {
				a, _ := h.gateway.Call(context.Background(), &ipc.Pair{Code: code, Name: name, Key: key}, nil)
				r, _ := a.(*ipc.PairReply)
				done <- r
			}()
			h.hands.Wait(time.Second)
			return done
		}
		refused := func(event string, r *ipc.PairReply) {
			t.Helper()
			if r == nil || r.OK || r.Code == "" || r.Message == "" {
				t.Errorf("%s: %+v", event, r)
			}
		}
		refused("pairing is closed", <-pair("000000", "Ben", key))
		code := h.pairingCode()
		wrong := "000000"
		if code == wrong {
			wrong = "000001"
		}
		refused("wrong code", <-pair(wrong, "Ben", key))
		refused("bad name", <-pair(code, "  ✓ APPROVED ", key))
		refused("not a point", <-pair(code, "Ben", make([]byte, 65)))
		refused("the point at another curve's size", <-pair(code, "Ben", key[:64]))

		waiting := pair(code, "Ben", key)
		refused("two at once", <-pair(code, "Eve", newPhone(t).point(t)))
		h.hands.Tap(device.Deny)
		refused("denied at the box", <-waiting)
		if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); s.Phones != 0 {
			t.Fatal("a phone was paired without the box")
		}
		h.hands.Wait(3 * time.Minute) // pairing mode closes
		first, second := h.pair("Ben"), h.pair("Kitchen")
		for p, role := range map[*phone]ipc.Role{first: ipc.RoleOwner, second: ipc.RoleAdult} {
			nonce := [32]byte{5}
			r := ask[*ipc.AuthReply](h, h.gateway, &ipc.Auth{Slot: p.slot, Nonce: nonce, Sig: p.sign(t, wire.AuthBytes(p.slot, nonce))})
			if !r.OK || r.Role != role {
				t.Errorf("slot %d: %+v, want role %v", p.slot, r, role)
			}
			r = ask[*ipc.AuthReply](h, h.gateway, &ipc.Auth{Slot: 3 - p.slot, Nonce: nonce, Sig: p.sign(t, wire.AuthBytes(3-p.slot, nonce))})
			if r.OK {
				t.Error("a phone was taken for another")
			}
		}
		code = h.pairingCode()
		refused("a name that is taken", <-pair(code, "kitchen", newPhone(t).point(t)))
		refused("a key that is paired", <-pair(code, "Other", first.point(t)))

		var paired int
		for _, a := range find[*audit.Admin](h.records()) {
			if a.Action == audit.AdminPair && a.Outcome == audit.Approved && a.By == audit.ByBox && a.Slot != 0 {
				paired++
				if a.Shown == 0 || a.Shown >= a.Pressed || a.Pressed >= a.Completed || len(a.Presses) < 2 || len(a.Pages) != 1 || len(a.Steps) < 3 || a.ScreenDigest == (audit.Digest{}) {
					t.Errorf("a pairing is recorded without how it was accepted: %+v", a)
				}
			}
			if a.Action == audit.AdminPair && a.Outcome == audit.Denied && (len(a.Steps) < 3 || len(a.Pages) != 0) {
				t.Errorf("a refused pairing is recorded as %+v", a)
			}
		}
		if paired != 2 {
			t.Errorf("%d of 2 pairings are in the audit", paired)
		}
		// They survived the restart.
		if h.turn(first, ipc.ID{1}) == (ipc.ID{}) {
			t.Error("a paired phone was forgotten")
		}
	})
}
