package audit

// learner sees the sealed records of the last two segments.
type learner struct {
	w     *writer
	turns turns
	byOwn map[ID]struct{} // calls that were promised without a press
}

// press tells the budget what a batch is about. A call that was promised before the last two segments counts as pressed.
func (l *learner) press(r Record) {
	switch p := r.Payload.(type) {
	case *IntentRecord:
		if p.Approval == 0 {
			l.byOwn[r.Inv] = struct{}{}
			return
		}
	case *EffectRecord:
		if _, own := l.byOwn[r.Inv]; own {
			delete(l.byOwn, r.Inv)
			return
		}
	default:
		return
	}
	l.w.budget.pressed = true
}

// read goes through content, which is known to be sound and ends with a batch.
func (l *learner) read(content []byte) error {
	begin := 0 // of the batch
	for at := 0; at < len(content); {
		f, err := parseFrame(content[at:])
		if err != nil {
			return err
		}
		r, err := l.w.chain.codec.record(f)
		if err != nil {
			return err
		}
		if err := l.turns.visit(found{Record: r, frame: f}); err != nil {
			return err
		}
		l.w.unknown.see(r)
		l.press(r)
		at += f.size
		if r.Kind == KindSeal {
			at += (Block - at%Block) % Block
			l.w.budget.flushed(at - begin)
			begin = at
		}
	}
	return nil
}
