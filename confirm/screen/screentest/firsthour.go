package screentest

import (
	"fmt"
	"time"

	"assent.home.arpa/confirm/screen"
)

// firstHour is the pairing of a phone and one request of it, from its coming to its approval, as the guide to the first hour
// shows them.
func firstHour() ([]Screen, error) {
	const phone, code, address = "Anna's phone", "482 913", "https://192.168.178.23"
	card := Search()
	card.Phone, card.Text, card.Note = phone, "height of Eiffel Tower", "asks, changes nothing"
	pages, err := screen.Pages(card)
	if err != nil {
		return nil, fmt.Errorf("first hour: %w", err)
	}
	all := []Screen{
		{"first-hour-scan", screen.DrawPairing(code, address, 106*time.Second, false)},
		{"first-hour-address", screen.DrawPairing(code, address, 101*time.Second, false)},
		{"first-hour-waiting", screen.DrawWaiting(screen.Waiting{
			Phone: phone, Title: card.Title, Destination: card.Destination, Pages: len(pages), Left: 161 * time.Second,
		})},
	}
	left, end := 60*time.Second, len(pages)-1
	for i, p := range pages[:end] {
		all = append(all, Screen{fmt.Sprintf("first-hour-page-%d", i+1), screen.DrawReading(p, left, false, false, 0, "LET GO")})
		left -= 4 * time.Second
	}
	return append(all,
		Screen{"first-hour-armed", screen.DrawReading(pages[end], left, true, true, 0, "LET GO")},
		Screen{"first-hour-let-go", screen.DrawReading(pages[end], left-2*time.Second, true, true, 1, "LET GO")},
	), nil
}
