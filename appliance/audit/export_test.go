package audit

import "errors"

// EncodeFrame and DecodeFrame show the external tests one frame at a time.

func EncodeFrame(r Record, prev Digest) (frame, body []byte, err error) {
	b, err := newCodec().encodeBody(r)
	if err != nil {
		return nil, nil, err
	}
	frame, _ = appendFrame(nil, prev, classOf(r.Kind), b)
	return frame, b, nil
}

func DecodeFrame(b []byte, prev Digest) (r Record, size int, redacted bool, err error) {
	f, err := parseFrame(b)
	if err != nil {
		return Record{}, 0, false, err
	}
	if f.link != link(prev, f.class, f.digest) {
		return Record{}, 0, false, errors.New("link mismatch")
	}
	r, err = newCodec().record(f)
	return r, f.size, f.redacted, err
}

// Blank is an empty payload of a kind.
func Blank(k Kind) Payload { return blank(k) }

// RawFrame frames any body with a true link.
func RawFrame(prev Digest, class byte, body []byte) []byte {
	frame, _ := appendFrame(nil, prev, class, body)
	return frame
}

// ParseFrame is the frame's grammar alone.
func ParseFrame(b []byte) (content []byte, class byte, redacted bool, size int, ok bool) {
	f, err := parseFrame(b)
	if err != nil {
		return nil, 0, false, 0, false
	}
	if f.redacted {
		return f.digest[:], f.class, true, f.size, true
	}
	return f.body, f.class, false, f.size, true
}

// DecodeBody reads a frame's record whatever came before it.
func DecodeBody(b []byte) (Record, int, error) {
	f, err := parseFrame(b)
	if err != nil {
		return Record{}, 0, err
	}
	r, err := newCodec().record(f)
	return r, f.size, err
}

// Kebab is a field's name as readers print it.
func Kebab(name string) string { return kebab(name) }
