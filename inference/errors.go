package inference

import (
	"errors"
	"fmt"
)

// ErrUnavailable says that the engine is not there or still loads its model. Nothing was generated; asking again later
// is safe.
var ErrUnavailable = errors.New("inference: the model is not available; it may still be loading")

// ErrAbsent comes with ErrUnavailable where there is no engine that anybody started: most often there is no model for it.
var ErrAbsent = errors.New("inference: there is no model")

// ErrInterrupted says that the engine died in the middle of a step. The Step holds what had arrived.
var ErrInterrupted = errors.New("inference: the model stopped in the middle of its answer")

// OverflowError says that a prompt leaves no room in the model's context. Drop the oldest turns and ask again.
type OverflowError struct {
	Prompt  int // tokens that the request needs
	Context int // tokens that the model has
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("inference: the conversation needs %d tokens and the model has %d; drop its oldest turns", e.Prompt, e.Context)
}
