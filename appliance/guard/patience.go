package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"assent.home.arpa/capabilities/policy"
)

// patienceFile is how people's requests stood. Times are on the boot clock, so they mean something in the same boot only.
type patienceFile struct {
	Version int                        `json:"version"`
	Boot    []byte                     `json:"boot"`
	People  map[string]policy.Patience `json:"people"`
}

// loadPatience reads how people's requests stand at the boot time now: to end this process shortens no wait. In another
// boot nobody can say how much of one has passed, so the last one begins anew.
func loadPatience(path string, boot [16]byte, now time.Duration) (map[string]policy.Patience, error) {
	b, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("guard: cool-downs: %w", err)
	}
	if b == nil {
		return nil, nil
	}
	var f patienceFile
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil || f.Version != 1 {
		return nil, fmt.Errorf("guard: cool-downs: %s is damaged; remove it", path)
	}
	if !bytes.Equal(f.Boot, boot[:]) {
		for person, p := range f.People {
			f.People[person] = p.Rebooted(now)
		}
		// Where the disk does not take it, the next start begins the wait anew, which is no reason not to start.
		_ = savePatience(path, boot, f.People)
	}
	return f.People, nil
}

func savePatience(path string, boot [16]byte, people map[string]policy.Patience) error {
	b, err := json.Marshal(patienceFile{Version: 1, Boot: boot[:], People: people})
	if err != nil {
		return err
	}
	return replace(path, b, 0o600)
}
