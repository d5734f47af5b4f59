package scripted

import "math"

// Shape of the machine. headSize is one that every backend of the engine supports.
const (
	headSize = 64
	heads    = 2
	feed     = 64
	plane    = headSize / 4 // of headSize/2 planes: the one that turns base^(-1/2) a token
)

// Attention. Within Context tokens the angle between query and key goes from phase to phase+turn, both in the falling
// part of the cosine and short of its zero, so a landmark always beats a token that is none (score 0), and a nearer
// landmark a farther one. The score's size is a compromise: ten tokens of distance must outweigh the rounding of keys to
// 16 bits, and the sum before scaling by 1/sqrt(headSize) must stay below 65504, the largest such number.
const (
	phase  = 0.8
	turn   = 0.7
	length = 200 // of query and key: the score is at most length²/8
)

// Weights of the output. The bigram outweighs the heads together, so they only decide where it leads to several replies.
const (
	toNext   = 12
	toFirst  = 4 // reply 1, after an ask
	toFollow = 2 // the reply after the last one said
	toSecond = 1 // reply 2, after a result if no reply of this script is in the prompt
)

// ropeBase makes the chosen plane turn by turn/Context a token.
func ropeBase() float32 { return float32(math.Pow(Context/turn, 2)) }

type machine struct {
	tokens  int
	width   int // of the residual stream: a component for each token, and the flags
	flags   int // component of the first flag: ask, result, and one for each reply
	ask     int // ids
	result  int
	newline int
	end     int
	replies [][]int
	next    map[int]int
}

func newMachine(v *vocabulary, replies [][]int, endless bool) *machine {
	m := &machine{
		tokens: len(v.texts), flags: len(v.texts), replies: replies, next: map[int]int{},
		ask: v.ids[askWord], result: v.ids[dataClose], newline: v.ids["\n"], end: v.ids[turnEnd],
	}
	m.width = (m.flags + 2 + len(replies) + headSize - 1) / headSize * headSize
	for i, r := range replies {
		for j, id := range r[:len(r)-1] {
			m.next[id] = r[j+1]
		}
		last := r[len(r)-1]
		m.next[last] = m.end
		if endless && i == len(replies)-1 {
			m.next[last] = r[0]
		}
	}
	return m
}

// tensor is a matrix of rows×columns, or a vector if rows is 0. Elements not listed are fill.
type tensor struct {
	name    string
	rows    int
	columns int
	fill    float32
	set     map[[2]int]float32
}

func (m *machine) tensors() []tensor {
	vector := func(name string, fill float32) tensor { return tensor{name: name, columns: m.width, fill: fill} }
	matrix := func(name string, rows, columns int, set map[[2]int]float32) tensor {
		return tensor{name: name, rows: rows, columns: columns, set: set}
	}
	// A one-hot vector of this width has a mean square of 1/width; this undoes the normalisation.
	undo := float32(1 / math.Sqrt(float64(m.width)))
	return []tensor{
		matrix("token_embd.weight", m.tokens, m.width, m.embedding()),
		vector("output_norm.weight", 1),
		matrix("output.weight", m.tokens, m.width, m.output()),
		vector("blk.0.attn_norm.weight", undo),
		matrix("blk.0.attn_q.weight", heads*headSize, m.width, m.queries()),
		matrix("blk.0.attn_k.weight", heads*headSize, m.width, m.keys()),
		matrix("blk.0.attn_v.weight", heads*headSize, m.width, m.values()),
		matrix("blk.0.attn_output.weight", m.width, heads*headSize, m.raised()),
		vector("blk.0.ffn_norm.weight", 1),
		matrix("blk.0.ffn_gate.weight", feed, m.width, nil),
		matrix("blk.0.ffn_up.weight", feed, m.width, nil),
		matrix("blk.0.ffn_down.weight", m.width, feed, nil),
	}
}

func (m *machine) embedding() map[[2]int]float32 {
	set := map[[2]int]float32{}
	for id := range m.tokens {
		set[[2]int{id, id}] = 1
	}
	return set
}

// queries are the same for every token and both heads.
func (m *machine) queries() map[[2]int]float32 {
	set := map[[2]int]float32{}
	for h := range heads {
		row := h*headSize + 2*plane
		for id := range m.tokens {
			set[[2]int{row, id}] = float32(length * math.Cos(phase))
			set[[2]int{row + 1, id}] = float32(length * math.Sin(phase))
		}
	}
	return set
}

func (m *machine) keys() map[[2]int]float32 {
	set := map[[2]int]float32{
		{2 * plane, m.ask}:    length,
		{2 * plane, m.result}: length,
	}
	for _, r := range m.replies {
		set[[2]int{headSize + 2*plane, r[len(r)-1]}] = length
	}
	return set
}

func (m *machine) values() map[[2]int]float32 {
	set := map[[2]int]float32{
		{0, m.ask}:    1,
		{1, m.result}: 1,
	}
	for i, r := range m.replies {
		set[[2]int{headSize + i, r[len(r)-1]}] = 1
	}
	return set
}

// raised copies what the heads found into the flags.
func (m *machine) raised() map[[2]int]float32 {
	set := map[[2]int]float32{
		{m.flags, 0}:     1,
		{m.flags + 1, 1}: 1,
	}
	for i := range m.replies {
		set[[2]int{m.flags + 2 + i, headSize + i}] = 1
	}
	return set
}

func (m *machine) output() map[[2]int]float32 {
	set := map[[2]int]float32{}
	for id := range m.tokens {
		to, ok := m.next[id]
		if !ok {
			to = m.end
		}
		set[[2]int{to, id}] = toNext
	}
	delete(set, [2]int{m.end, m.newline})
	first := func(i int) int { return m.replies[min(i, len(m.replies)-1)][0] }
	for i := range m.replies {
		set[[2]int{first(i), m.newline}] = toNext
		set[[2]int{first(i + 1), m.flags + 2 + i}] = toFollow
	}
	set[[2]int{first(1), m.flags + 1}] = toSecond
	set[[2]int{first(0), m.flags}] = toFirst
	return set
}
