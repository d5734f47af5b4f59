package runs

import (
	"fmt"
	"time"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
)

// Record describes one step of the model: r is what was asked of it, s what it said, and p what that was parsed as.
func Record(id, run string, created time.Time, info inference.Info, r inference.Request, s inference.Step, p proposal.Parsed) RunInvocation {
	out := RunInvocation{
		ID: id, Run: run, Created: created,
		Parameters: Parameters{
			Model: info.Model, Dialect: info.Dialect,
			MaxTokens: r.MaxTokens, Seed: r.Seed, Temperature: r.Temperature, Grammar: r.Grammar,
		},
		Outputs: Outputs{Text: s.Text, Stop: s.Stop.String(), ToolCalls: ToolCalls(p), Returned: p.Count()},
	}
	if r.System != "" {
		out.Inputs.Messages = append(out.Inputs.Messages, Message{"system", r.System})
	}
	for _, e := range r.Examples {
		answer := e.Answer
		if e.Name != "" {
			answer = fmt.Sprintf("{\"name\": %q, \"arguments\": %s}", e.Name, e.Arguments)
		}
		out.Inputs.Messages = append(out.Inputs.Messages, Message{"user", e.Question}, Message{"assistant", answer})
	}
	roles := map[inference.Kind]string{inference.User: "user", inference.Assistant: "assistant", inference.Outcome: "tool"}
	for _, m := range r.History {
		out.Inputs.Messages = append(out.Inputs.Messages, Message{roles[m.Kind], m.Text})
	}
	for _, e := range r.Catalog {
		out.Inputs.Tools = append(out.Inputs.Tools, Tool{e.Name, e.Description, e.Parameters})
	}
	return out
}

// ToolCalls returns the candidates of a step. A call to which the model gave no id gets "call_" and its place, from 1,
// among everything that the model returned.
func ToolCalls(p proposal.Parsed) []ToolCall {
	taken := map[string]bool{}
	for _, it := range p.Items {
		if c, ok := it.(proposal.Candidate); ok {
			taken[c.ID] = true
		}
	}
	var out []ToolCall
	for i, it := range p.Items {
		c, ok := it.(proposal.Candidate)
		if !ok {
			continue
		}
		id := c.ID
		if id == "" {
			for id = fmt.Sprintf("call_%d", i+1); taken[id]; {
				id += "_"
			}
			taken[id] = true
		}
		out = append(out, ToolCall{id, c.Name, c.Arguments})
	}
	return out
}
