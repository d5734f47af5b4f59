package proposal

import (
	"errors"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference/internal/strictjson"
)

type failure struct {
	code   capabilities.Code
	detail string
}

func malformed(detail string) *failure { return &failure{capabilities.CodeMalformed, detail} }

// envelope reads the object between the marks. With an error, the candidate holds the id if there was one to read.
func envelope(body []byte) (Candidate, *failure) {
	members, err := strictjson.Object(body)
	if errors.Is(err, strictjson.ErrDuplicateKey) {
		return Candidate{}, &failure{capabilities.CodeAmbiguous, err.Error()}
	}
	if err != nil {
		return Candidate{}, malformed("not strict json: " + err.Error())
	}
	var c Candidate
	var problem *failure
	var named, argued bool
	for _, m := range members {
		switch m.Key {
		case "id":
			if c.ID, err = strictjson.String(m.Value); err != nil || c.ID == "" || len(c.ID) > MaxIDSize {
				problem = malformed("the id must be a string of 1 to 64 bytes")
			}
		case "name":
			named = true
			if c.Name, err = strictjson.String(m.Value); err != nil {
				problem = malformed("the name must be a string")
			}
		case "arguments":
			argued = true
			if c.Arguments = m.Value; m.Value[0] != '{' {
				problem = malformed("the arguments must be an object")
			}
		default:
			problem = malformed("a call has no members but id, name and arguments")
		}
	}
	if problem == nil && !(named && argued) {
		problem = malformed("a call needs a name and arguments")
	}
	if problem != nil {
		return Candidate{ID: c.ID}, problem
	}
	return c, nil
}
