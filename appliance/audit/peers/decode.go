package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

// decoder reads a log and checks nothing: frames are taken apart and bodies decoded, by the decoder that the box uses for
// messages, into the structs that the log's own reader fills. No hash, no link, no limit, no second look at the encoding.
type decoder struct{ mode cbor.DecMode }

func newDecoder() (decoder, error) {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 8,
	}.DecMode()
	return decoder{mode}, err
}

// record is a record as it is encoded.
type record struct {
	Kind    audit.Kind      `cbor:"0,keyasint"`
	Seq     audit.Seq       `cbor:"1,keyasint"`
	BootID  audit.ID        `cbor:"2,keyasint"`
	Boot    int64           `cbor:"3,keyasint"`
	Wall    int64           `cbor:"4,keyasint,omitzero"`
	Clock   clock.State     `cbor:"5,keyasint"`
	Salt    audit.ID        `cbor:"6,keyasint"`
	Inv     audit.ID        `cbor:"7,keyasint,omitzero"`
	Payload cbor.RawMessage `cbor:"8,keyasint"`
}

func (d decoder) log(fsys fs.FS) error {
	names, err := fs.Glob(fsys, "seg-*.cborseq")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if err := d.segment(content); err != nil {
			return fmt.Errorf("%s: %w", path.Base(name), err)
		}
	}
	return nil
}

func (d decoder) segment(content []byte) error {
	for offset := 0; offset < len(content); {
		if content[offset] == 0 {
			if offset%audit.Block == 0 {
				return nil
			}
			offset += audit.Block - offset%audit.Block
			continue
		}
		body, size, err := takeApart(content[offset:])
		if err != nil {
			return err
		}
		var r record
		if err := d.mode.Unmarshal(body, &r); err != nil {
			return err
		}
		p := blank(r.Kind)
		if p == nil {
			return fmt.Errorf("kind %d", r.Kind)
		}
		if err := d.mode.Unmarshal(r.Payload, p); err != nil {
			return err
		}
		offset += size
	}
	return nil
}

// takeApart finds a frame's body by its heads, without copying it.
func takeApart(b []byte) (body []byte, size int, err error) {
	n, at := 0, 3
	if len(b) < 8 || b[0] != 0x83 || b[2]>>5 != 2 {
		return nil, 0, errors.New("not a frame")
	}
	switch info := b[2] & 31; {
	case info < 24:
		n = int(info)
	case info == 24:
		n, at = int(b[3]), 4
	case info == 25:
		n, at = int(b[3])<<8|int(b[4]), 5
	default:
		n, at = int(b[3])<<24|int(b[4])<<16|int(b[5])<<8|int(b[6]), 7
	}
	if size = at + n + 34; size > len(b) {
		return nil, 0, errors.New("the frame is cut")
	}
	return b[at : at+n], size, nil
}

// blank is an empty payload of those kinds that such a log has.
func blank(k audit.Kind) any {
	switch k {
	case audit.KindGenesis:
		return new(audit.Genesis)
	case audit.KindSegment:
		return new(audit.Segment)
	case audit.KindBoot:
		return new(audit.Boot)
	case audit.KindProposal:
		return new(audit.Proposal)
	case audit.KindDecision:
		return new(audit.Decision)
	case audit.KindApproval:
		return new(audit.Approval)
	case audit.KindIntent:
		return new(audit.IntentRecord)
	case audit.KindEffect:
		return new(audit.EffectRecord)
	case audit.KindObserve:
		return new(audit.Observe)
	case audit.KindSeal:
		return new(audit.Seal)
	case audit.KindEpoch:
		return new(audit.Epoch)
	case audit.KindClock:
		return new(audit.ClockStep)
	case audit.KindBlob:
		return new(audit.Blob)
	}
	return nil
}
