// The conversation as it is on the screen.

import { byID, el, foreign } from './dom.js';
import { pendingCard, resultCard } from './cards.js';
import * as words from './words.js';

export class View {
  #log = byID('log');
  #turns = new Map(); // turn → {article, body, prose, cards}
  #local = []; // questions that the box has not taken up yet
  #pinned = true; // whoever is looking at the newest line keeps it in sight

  constructor(withdraw) {
    this.withdraw = withdraw;
    this.phone = '';
    let height = 0;
    addEventListener('scroll', () => {
      const page = document.scrollingElement;
      const grew = page.scrollHeight !== height; // then it is not the person who moved
      height = page.scrollHeight;
      if (!grew) this.#pinned = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
    }, { passive: true });
    new ResizeObserver(() => this.#follow()).observe(this.#log);
  }

  clear() {
    this.#log.replaceChildren();
    this.#turns.clear();
    this.#local = [];
    this.#emptiness();
  }

  get openTurn() {
    for (const turn of this.#turns.values()) if (turn.open) return turn;
    return null;
  }

  // asked shows a question at once; the box's own turn takes its place.
  asked(text) {
    const note = el('p', { class: 'small' }, 'Sending…');
    const article = el('article', { class: 'turn' }, foreign('p', 'question sending', text), note);
    this.#local.push({ text, article, note });
    this.#add(article);
    return { fail: (why) => { note.className = 'problem'; note.setAttribute('role', 'alert'); note.textContent = why; } };
  }

  #turn(id, text) {
    let turn = this.#turns.get(id);
    if (turn) return turn;
    const at = this.#local.findIndex((local) => local.text === text);
    if (at >= 0) this.#local.splice(at, 1)[0].article.remove();
    const body = el('div', { class: 'answer' });
    const article = el('article', { class: 'turn', 'aria-busy': 'true' }, text === undefined ? null : foreign('p', 'question', text), body);
    turn = { article, body, prose: null, cards: new Map(), open: true, thinking: el('p', { class: 'thinking', role: 'status' }, el('i', {}), el('i', {}), el('i', {}), el('span', { class: 'hidden' }, 'The model is thinking')) };
    body.append(turn.thinking);
    this.#turns.set(id, turn);
    this.#add(article);
    return turn;
  }

  began(data) { this.#turn(data.turn, data.text); }

  text(data) {
    const turn = this.#turn(data.turn);
    if (!turn.prose) {
      turn.prose = document.createTextNode('');
      this.#into(turn, el('p', { class: 'prose', dir: 'auto' }, turn.prose));
    }
    turn.prose.appendData(turn.prose.length ? data.text : data.text.trimStart());
    if (!turn.prose.length) { // only white space so far
      turn.prose.parentNode.remove();
      turn.prose = null;
    }
    this.#follow();
  }

  pending(data) { this.#card(data.turn, data.invocation, pendingCard(data, this.phone, this.withdraw), true); }

  result(data) {
    const outcome = data.outcome;
    this.#card(data.turn, outcome.invocation, resultCard(outcome), false);
  }

  #card(turnID, invocation, card, waiting) {
    const turn = this.#turn(turnID);
    turn.prose = null;
    const old = invocation && turn.cards.get(invocation);
    if (old) old.replaceWith(card);
    else this.#into(turn, card);
    if (invocation) turn.cards.set(invocation, card);
    turn.thinking.hidden = waiting;
    this.#follow();
  }

  #into(turn, node) {
    turn.body.insertBefore(node, turn.thinking);
    this.#follow();
  }

  ended(data) {
    const turn = this.#turn(data.turn);
    const note = words.turnEnd(data);
    this.#close(turn);
    if (note) turn.body.append(el('p', { class: data.reason === 'failed' ? 'problem' : 'small', role: 'status' }, words.sentence(note)));
    this.#follow();
  }

  #close(turn) {
    turn.open = false;
    turn.article.removeAttribute('aria-busy');
    turn.thinking.remove();
  }

  // snapshot shows the conversation as the box has it, whatever was on the screen before.
  snapshot(data) {
    const local = this.#local;
    this.clear();
    for (const [at, item] of data.items.entries()) {
      if (item.kind === 'question') this.began({ turn: item.turn, text: item.text });
      else if (item.kind === 'prose') this.text({ turn: item.turn, text: item.text });
      else if (item.outcome) this.result({ turn: item.turn, outcome: item.outcome });
      // What is still being said goes on where it was.
      if (at < data.items.length - 1 || item.turn !== data.open) this.#turn(item.turn).prose = null;
    }
    for (const pending of data.pending) this.pending(pending);
    for (const [id, turn] of this.#turns) if (id !== data.open) this.#close(turn);
    for (const { open, body } of this.#turns.values()) {
      if (!open && !body.childElementCount) body.append(el('p', { class: 'small cut-off' }, 'No answer came: the question was stopped, or the box was. What waited for a press was not done. Ask again if you still want it.'));
    }
    for (const { text, note } of local) {
      if (note.className === 'problem' && !data.items.some((item) => item.text === text)) this.asked(text).fail(note.textContent);
    }
  }

  #add(article) {
    this.#log.append(article);
    this.#emptiness();
    this.#pinned = true;
    this.#follow();
  }

  #emptiness() { byID('empty').hidden = this.#log.childElementCount > 0; }

  #follow() {
    const page = document.scrollingElement;
    if (this.#pinned && this.#log.childElementCount) page.scrollTop = page.scrollHeight;
  }
}
