package executor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/confirm/screen"
)

// maxRequest bounds the exact request: it fits a grant with room to spare, and a blob of the audit.
const maxRequest = 32 << 10

// drawing is a card as the panel will show it.
type drawing struct {
	card   screen.Card
	pages  int
	digest [32]byte
}

// validate is the sole authority over arguments: it has the adapter decode, normalise and render the call, and checks that
// what would be shown can be shown. It resolves no name and opens nothing.
func (e *Executor) validate(_ context.Context, c *call) *ending {
	if len(c.Arguments) > c.spec.Bounds.ArgBytes {
		end := rejected(capabilities.StageValidate, capabilities.CodeArgumentTooLong)
		end.message = fmt.Sprintf("the arguments are longer than %d bytes", c.spec.Bounds.ArgBytes)
		return end
	}
	plan, err := c.capability.Plan(c.Arguments)
	if err != nil {
		return argumentEnding(err)
	}
	if n := utf8.RuneCountInString(plan.Text); n > c.spec.Bounds.Shown {
		end := rejected(capabilities.StageValidate, capabilities.CodeArgumentTooLong)
		end.message = fmt.Sprintf("the text has %d characters, at most %d are allowed", n, c.spec.Bounds.Shown)
		return end
	}
	if err := sound(c.spec, plan); err != nil {
		end := rejected(capabilities.StageValidate, capabilities.CodeInternal)
		end.message = "the adapter rendered a call that it may not make: " + err.Error()
		return end
	}
	if plan.Request != nil && plan.Request.Credential != "" {
		return rejected(capabilities.StageValidate, capabilities.CodeNotConfigured)
	}
	c.plan, c.args, c.request = plan, sha256.Sum256(plan.Args), plan.Request.Digest()
	if !policy.NeedsPress(c.spec) {
		return nil
	}
	c.drawn, err = render(plan, c.Turn, e.cfg.Large)
	if err != nil {
		return undisplayable(err)
	}
	return nil
}

// argumentEnding turns an adapter's refusal into an outcome. An error that is not an ArgumentError is the adapter's fault,
// and its text stays here.
func argumentEnding(err error) *ending {
	var bad *capabilities.ArgumentError
	if !errors.As(err, &bad) {
		return rejected(capabilities.StageValidate, capabilities.CodeInternal)
	}
	end := rejected(capabilities.StageValidate, bad.Code)
	if end.code == "" {
		end.code = capabilities.CodeInvalidArguments
	}
	end.message, end.field = bad.Error(), bad.Argument
	return end
}

// sound checks what an adapter rendered against what its spec promises: a capability that stays at home renders no
// request, one that does not renders exactly where it goes, and the panel names that place and no other.
func sound(s capabilities.Spec, p capabilities.Plan) error {
	if len(p.Args) == 0 || p.Title == "" {
		return errors.New("no arguments or no title")
	}
	r := p.Request
	if (r != nil) != (s.Class == capabilities.ClassNet) {
		return errors.New("request and worker class do not fit")
	}
	if r == nil {
		return nil
	}
	switch {
	case r.Scheme != "https" && r.Scheme != "http":
		return errors.New("scheme")
	case r.Host == "" || r.Port == 0 || len(r.Bytes) == 0 || len(r.Bytes) > maxRequest:
		return errors.New("host, port or size")
	case r.Address == 0, r.Address == capabilities.AddressPublic && s.Network != capabilities.NetworkInternet:
		return errors.New("address class")
	case r.Host != p.Destination && !strings.HasSuffix(r.Host, "."+p.Destination):
		return errors.New("destination and host differ")
	}
	return nil
}

// render draws the call's card. Every field that a person will read is checked, the phone's name and the banner included.
func render(p capabilities.Plan, t *Turn, large bool) (drawing, error) {
	d := drawing{card: screen.Card{
		Title: p.Title, Text: p.Text, Destination: p.Destination, Note: p.Note,
		Phone: t.person.Phone, Taint: t.conversation.banner(), Large: large,
	}}
	for _, text := range []string{d.card.Title, d.card.Text, d.card.Destination, d.card.Note, d.card.Phone, d.card.Taint} {
		if err := screen.Check(text); err != nil {
			return drawing{}, err
		}
	}
	pages, err := screen.Pages(d.card)
	if err != nil {
		return drawing{}, err
	}
	d.pages, d.digest = len(pages), screen.Digest(pages)
	return d, nil
}

// undisplayable names the code point by number: repeating it would show what cannot be shown.
func undisplayable(err error) *ending {
	end := rejected(capabilities.StageValidate, capabilities.CodeUndisplayable)
	var bad *screen.UndisplayableError
	if errors.As(err, &bad) {
		end.message = fmt.Sprintf("the box cannot show %U faithfully, so nobody can agree to it: %s", bad.Rune, bad.Reason)
	}
	return end
}
