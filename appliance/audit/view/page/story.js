'use strict';
// One event in full: the chain from the question to the outcome.
{
  const { el, byID, words, foreign } = assent;

  const states = {
    redacted: 'This text was removed from the record. Its digest remains, and shows whether a text that somebody brings along is the same.',
    withheld: 'The box keeps only the digest of this, by the rule for this ability.',
    'not kept': 'This text was not kept; only its digest is.',
  };

  const pictureStates = {
    redacted: 'The pictures were removed from the record. Their digests remain.',
    withheld: 'The pictures were shown on the box’s screen, and by the rule for this ability only their digests are kept.',
    'not kept': 'The pictures were not kept; only their digests are.',
  };

  // exact is a literal's bytes as text; null where they are none.
  function exact(bytes) {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return null;
    }
  }

  function kept(l) {
    const bytes = l.bytes ? assent.bytes(l.bytes) : null;
    const text = bytes ? exact(bytes) : l.text ?? '';
    if (text !== null) return foreign('pre', 'quoted', text);
    return el('details', {}, el('summary', {}, `${words.number(bytes.length)} bytes that are no text`), foreign('pre', 'quoted', l.text ?? ''));
  }

  const literal = (l) => el('figure', { class: 'literal' },
    el('figcaption', { class: 'small' }, l.name),
    l.state === 'kept' ? kept(l) : el('p', { class: 'gone' }, states[l.state] ?? l.state));

  function pages(p) {
    if (p.state !== 'kept' || !p.frames?.length) return el('p', { class: 'gone' }, pictureStates[p.state] ?? 'There is no picture.');
    return el('div', { class: 'pages' }, p.frames.map((frame, i) => {
      const label = p.frames.length === 1 ? 'What the screen showed' : `Page ${i + 1} of ${p.frames.length}`;
      return el('figure', {}, assent.glass(assent.bytes(frame), `Picture of the box’s screen. ${label}.`), el('figcaption', { class: 'small' }, label));
    }));
  }

  const buttons = { approve: 'Approve', deny: 'Deny' };
  const edges = { press: 'down', release: 'up' };
  const first = 12; // of the panel's moves, before those that the record left out

  function press(p) {
    const line = (what, ns) => el('li', {}, `${what}, ${words.span(Math.abs(ns))} ${ns < 0 ? 'before' : 'after'} ${p.since}`);
    const list = (kind, rows) => rows.length ? el('ol', { class: kind }, rows) : null;
    const moves = (p.moves ?? []).map((m) => line(m.text, m.at_ns));
    if (p.left_out) moves.splice(first, 0, el('li', {}, `${words.number(p.left_out)} more that the record left out`));
    return [
      list('moves', moves),
      list('edges', (p.edges ?? []).map((e) => line(`${buttons[e.button] ?? e.button} ${edges[e.edge] ?? e.edge}`, e.at_ns))),
    ];
  }

  function proof(step) {
    const rows = [['Entries', step.records.map((n) => `#${n}`).join(', ')]];
    if (step.when) rows.push(['Time', step.when.text]);
    for (const f of step.facts ?? []) rows.push([f.name, f.value]);
    for (const l of step.literals ?? []) rows.push([`SHA-256: ${l.name}`, l.digest], ...(l.record ? [[`Entry: ${l.name}`, `#${l.record}`]] : []));
    return el('details', {}, el('summary', {}, 'Details'),
      el('dl', { class: 'proof' }, rows.flatMap(([name, value]) => [el('dt', {}, name), el('dd', { class: 'code' }, assent.marked(String(value)))])),
      step.press ? press(step.press) : null);
  }

  const step = (s) => el('li', { class: `step ${s.name}` },
    el('h3', {}, words.step(s.name)),
    el('p', { class: 'said', dir: 'auto' }, assent.marked(s.text)),
    s.pages ? pages(s.pages) : null,
    (s.literals ?? []).map(literal),
    proof(s));

  const clocks = {
    estimated: 'The time is estimated: the clock was set later, and the box counted on.',
    unset: 'The clock was not set, so only the time since the box’s start is known.',
    kept: '',
    synced: '',
  };

  const moment = (when) => when.unix_ms ? `${when.clock === 'estimated' ? 'about ' : ''}${words.exact(when.unix_ms)}` : `${words.span(when.since_start_ns)} after a start`;

  function about(s) {
    const parts = [words.kind(s.kind), moment(s.when)];
    if (s.phone) parts.push(`asked by ${words.phone(s.phone)}`);
    if (s.destination) parts.push(`to ${s.destination}`);
    return el('p', { class: 'small', dir: 'auto' }, assent.marked(parts.join(' · ')));
  }

  const note = (text) => text ? el('p', { class: 'note' }, text) : null;

  function render(s) {
    return [
      el('p', { class: 'back' }, el('a', { class: 'button quiet', href: '#events' }, 'All events')),
      el('h2', { id: 'story-title', tabindex: '-1', dir: 'auto' }, assent.marked(s.headline)),
      about(s),
      el('div', { class: `ending ${words.tone(s.outcome)}` }, s.outcome === 'noted' ? null : assent.badge(s.outcome), el('p', { dir: 'auto' }, assent.marked(s.said))),
      note(clocks[s.when.clock]),
      note(s.partial ? 'The beginning of this is not here: it was pruned, or is told in an earlier event.' : ''),
      note(s.seal ? '' : 'No signature vouches for this: the record ends before it. Nobody relied on it, and it proves nothing.'),
      el('ol', { class: 'steps' }, s.steps.map(step)),
      el('details', {}, el('summary', {}, 'Where this is in the record'),
        el('dl', { class: 'proof' },
          el('dt', {}, 'Entries'), el('dd', { class: 'code' }, `#${s.first} to #${s.last}`),
          el('dt', {}, 'Signature that vouches for it'), el('dd', { class: 'code' }, s.seal ? `#${s.seal}` : 'none'),
          el('dt', {}, 'Name of the event'), el('dd', { class: 'code' }, s.id),
          s.code ? [el('dt', {}, 'Code'), el('dd', { class: 'code' }, assent.marked(s.code))] : [],
          s.ask ? [el('dt', {}, 'Question'), el('dd', { class: 'code' }, s.ask)] : [],
          el('dt', {}, 'Time, as recorded'), el('dd', { class: 'code' }, s.when.text))),
    ];
  }

  assent.showStory = async (row) => {
    const node = byID('story');
    let content;
    try {
      content = render(await assent.story(row));
    } catch (error) {
      content = [
        el('p', { class: 'back' }, el('a', { class: 'button quiet', href: '#events' }, 'All events')),
        el('h2', { id: 'story-title', tabindex: '-1' }, 'This event cannot be shown'), el('p', {}, error.message),
      ];
    }
    node.replaceChildren(...content.flat().filter(Boolean));
    node.hidden = false;
  };
}
