package screen

import "fmt"

// labelBulletin heads a bulletin's pages. No page of a card has it.
const labelBulletin = "NOTICE"

// Bulletin draws what the box itself has to say to whoever stands at it, word for word, in pages like those of a card, large
// if asked for. Its pages have a label of their own, so that no request looks like one, and nothing can be approved from them.
// It fails like Pages.
func Bulletin(text string, large bool) ([]Page, error) {
	if err := Check(text); err != nil {
		return nil, err
	}
	size := plainFace()
	if large {
		size = largeFace()
	}
	drawn := textDrafts(size, labelBulletin, text)
	if len(drawn) == 0 {
		return nil, ErrEmpty
	}
	pages := make([]Page, len(drawn))
	for i, d := range drawn {
		hint := "PRESS: NEXT PAGE"
		if i == len(drawn)-1 {
			hint = "PRESS: CLOSE"
		}
		header(&d.page.Frame, d.label, fmt.Sprintf("%d/%d", i+1, len(drawn)))
		low(hint, 1, stripTop+1, func(x, y int) { d.page.Frame.Set(x, y, true) })
		pages[i] = d.page
	}
	return pages, nil
}
