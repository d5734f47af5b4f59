package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
)

// A conversation goes on after a restart as if there had been none: for the phone and, token for token, for the model.
func TestConversationSurvivesARestart(t *testing.T) {
	b := newBox(t, both(), say("Looking."+health(1), "Fine.", "Yes.", "Yes.")...)
	b.ask("How is the box?")
	before, _ := b.Snapshot(1, talk(1))
	b.ask("Really?")
	b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) })
	after, ok := b.Snapshot(1, talk(1))
	if !ok {
		t.Fatal("the conversation is gone")
	}
	if diff := cmp.Diff(before.Items, after.Items[:len(before.Items)]); diff != "" {
		t.Errorf("snapshot (-before +after):\n%s", diff)
	}
	b.ask("Again?")
	requests := b.model.Requests()
	had, got := requests[2].History, requests[3].History
	if diff := cmp.Diff(had, got[:len(had)]); diff != "" || len(got) != len(had)+2 {
		t.Errorf("history (-before +after):\n%s", diff)
	}
}

// What was said and obtained in a turn that a power cut ends is there afterwards.
func TestPowerCutInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), conversationtest.Reply{Text: health(1)}, conversationtest.Reply{Text: "It", Hang: true})
		_, end := b.begin(t.Context(), 1, talk(1), "How is the box?")
		synctest.Wait()
		// The files as they are at this instant, with nothing closed.
		dir := t.TempDir()
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(b.path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "c.db"+suffix), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.Cancel(1, talk(1))
		end()
		b.with(func(o *conversation.Options) { o.Store = openStore(t, filepath.Join(dir, "c.db")) })
		snap, ok := b.Snapshot(1, talk(1))
		if !ok || len(snap.Items) != 2 || snap.Items[0].Text != "How is the box?" || snap.Items[1].Outcome.Status != "done" || snap.Open != nil {
			t.Fatalf("snapshot %+v", snap)
		}
		if e := theEnd(t, b.ask("And now?")); e.Reason != "complete" {
			t.Errorf("end %+v", e)
		}
	})
}

// A conversation is its phone's: to another it does not exist, in memory or in the store, and its name tells nothing.
func TestConversationsBelongToOnePhone(t *testing.T) {
	b := newBox(t, both(), say("Yes.")...)
	b.askIn(1, talk(1), "secret")
	for range 2 {
		if snap, ok := b.Snapshot(2, talk(1)); ok || len(snap.Items) != 0 {
			t.Errorf("another phone reads %+v", snap)
		}
		phone := &conversationtest.Phone{}
		err := b.Ask(t.Context(), conversation.Turn{Slot: 2, Conversation: talk(1), Ask: b.guard.Open(), Text: "What was said?"}, phone.Emit)
		if !errors.Is(err, conversation.ErrNotFound) || len(phone.Frames()) != 0 {
			t.Errorf("another phone asked in it: %v, and was sent %v", err, phone.Frames())
		}
		b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) }) // and once more from the store
	}
	if n := len(b.model.Requests()); n != 1 {
		t.Errorf("%d model steps", n)
	}
	if snap, _ := b.Snapshot(1, talk(1)); len(snap.Items) != 2 {
		t.Errorf("its owner reads %+v", snap)
	}
}

func TestOneTurnAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), conversationtest.Reply{Hang: true})
		_, end := b.begin(t.Context(), 1, talk(1), "first")
		synctest.Wait()
		err := b.Ask(t.Context(), conversation.Turn{Slot: 1, Conversation: talk(1), Ask: b.guard.Open(), Text: "second"}, (&conversationtest.Phone{}).Emit)
		if !errors.Is(err, conversation.ErrTurnRunning) {
			t.Errorf("a second question: %v", err)
		}
		b.Cancel(1, talk(1))
		end()
	})
}

// One phone cannot fill the box: its quietest conversation goes, and nobody else's.
func TestConversationsOfOnePhoneAreBounded(t *testing.T) {
	b := newBox(t, both())
	b.askIn(2, talk(200), "another phone's")
	for i := range 53 {
		b.askIn(1, talk(byte(i)), fmt.Sprint(i))
		if i == 40 {
			b.askIn(1, talk(0), "still in use")
		}
	}
	for _, s := range []*box{b, b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) })} {
		for id, want := range map[byte]bool{0: true, 1: false, 2: false, 3: false, 4: true, 52: true} {
			if _, ok := s.Snapshot(1, talk(id)); ok != want {
				t.Errorf("conversation %d is there: %v", id, ok)
			}
		}
		if _, ok := s.Snapshot(2, talk(200)); !ok {
			t.Error("another phone's conversation is gone")
		}
	}
}

// A disk that takes nothing more costs what is kept over a restart, and not the conversation.
func TestChatGoesOnWithoutADisk(t *testing.T) {
	b := newBox(t, both(), say("My name is Box.", health(1), "Box.")...)
	b.store.Close()
	b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) })
	b.ask("Who are you?")
	b.runs.Fill()
	b.opts.Store.Close()
	phone := b.ask("Again?")
	if e := theEnd(t, phone); e.Reason != "complete" || phone.Prose() != "Box." {
		t.Errorf("end %+v after %q", e, phone.Prose())
	}
	if diff := cmp.Diff([]string{done}, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if p := b.guard.Proposals()[0]; p.RunDigest == [32]byte{} {
		t.Error("a record that could not be kept has no digest")
	}
	requests := b.model.Requests()
	if last := requests[len(requests)-1]; len(last.History) != 5 {
		t.Errorf("the model was given %d messages", len(last.History))
	}
}

func TestStoreRefusesAForeignFile(t *testing.T) {
	for name, data := range map[string][]byte{
		"garbage":         bytes.Repeat([]byte("garbage "), 512),
		"another version": nil,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.db")
			if data == nil {
				openStore(t, path).Close()
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				b[63] = 9 // user_version, big-endian at offset 60 (SQLite file format section 1.3)
				data = b
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := conversation.OpenStore(t.Context(), path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), "move the file away") {
				t.Errorf("%v does not say what to do", err)
			}
			if got, _ := os.ReadFile(path); !bytes.Equal(got, data) {
				t.Error("the file was changed")
			}
		})
	}
}

// What people said is for the service's own user.
func TestStoreIsPrivate(t *testing.T) {
	b := newBox(t, both(), say("Yes.")...)
	b.ask("secret")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(b.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(b.path+suffix), info.Mode().Perm())
		}
	}
}

// A question whose phone is gone before it is begun leaves no conversation that is answered for ever.
func TestAskWithADeadContext(t *testing.T) {
	b := newBox(t, both(), say("Yes.")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	phone := &conversationtest.Phone{}
	err := b.Ask(ctx, conversation.Turn{Slot: 1, Conversation: talk(1), Ask: b.guard.Open(), Text: "?"}, phone.Emit)
	if !errors.Is(err, context.Canceled) || len(phone.Frames()) != 0 {
		t.Errorf("%v, and the phone was sent %v", err, phone.Frames())
	}
	if e := theEnd(t, b.ask("?")); e.Reason != "complete" {
		t.Errorf("end %+v", e)
	}
}
