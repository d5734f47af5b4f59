// The cards: what waits at the box, and what became of it.

import { el, foreign, marked } from './dom.js';
import * as words from './words.js';
import { openSheet } from './sheet.js';
import { table } from './table.js';

// pendingCard is "look at the box". It can take the request back; nothing on it approves. Once somebody at the box has let
// it go ahead it says so, and nothing can be taken back any more.
export function pendingCard(p, phone, withdraw) {
  if (p.decided) {
    return el('section', { class: 'card pending working', 'aria-label': 'Approved at the box' },
      el('p', { class: 'look' }, el('span', { class: 'lamp', 'aria-hidden': 'true' }), 'Approved, working…'),
      el('p', {}, 'Somebody at the box said yes. It is under way now.'),
      glass(p),
      request(p));
  }
  const button = el('button', { class: 'quiet wide', type: 'button', onclick: () => { button.disabled = true; withdraw(p.invocation); } }, 'Don’t do it');
  const pages = p.pages === 1 ? '1 page' : `${p.pages} pages`;
  return el('section', { class: 'card pending', 'aria-label': 'Waits at the box' },
    el('p', { class: 'look' }, el('span', { class: 'lamp', 'aria-hidden': 'true' }), 'Look at the box'),
    el('p', {}, 'Read it on the box’s own screen, then hold the button there. Only a press at the box can approve.'),
    glass(p),
    el('p', { class: 'small' }, `${pages} on the box’s screen · asked by this phone, `, foreign('span', '', phone)),
    request(p),
    button);
}

const glass = (p) => el('div', { class: 'glass' },
  foreign('p', 'glass-title', p.title),
  p.text ? el('p', { class: 'glass-text', dir: 'auto' }, marked(p.text)) : null,
  p.destination ? el('p', { class: 'glass-to' }, el('span', {}, 'goes to'), el('strong', { dir: 'ltr' }, p.destination)) : null);

const request = (p) => details([
  ['Capability', `${p.capability} version ${p.version}`],
  ['Adapter', p.revision],
  ['Invocation', p.invocation],
  ['Digest of the arguments', p.args_digest],
  ['Exact request', p.request],
]);

// resultCard shows one outcome, the same object that the model was given.
export function resultCard(o) {
  if (o.status !== 'done') return quietCard(o);
  const data = o.data ?? {};
  const body = Array.isArray(data.citations) ? citations(data.citations) : table(data);
  const time = words.when(o.retrieved_at);
  return el('section', { class: 'card result', 'aria-label': words.capability(o.capability) },
    el('p', { class: 'card-title' }, words.capability(o.capability), time ? el('span', { class: 'small' }, time) : null),
    body,
    details([
      ['Capability', `${o.capability} version ${o.version}`],
      ['Invocation', o.invocation],
    ]));
}

function quietCard(o) {
  const { title, text, plain } = words.outcome(o);
  return el('section', { class: `card ended ${o.status === 'unknown' ? 'unknown' : ''}`, 'aria-label': `${words.capability(o.capability)}: ${title}` },
    el('p', { class: 'card-title' }, title, o.capability ? el('span', { class: 'small' }, words.capability(o.capability)) : null),
    el('p', {}, text),
    plain ? el('p', { class: 'small' }, plain) : null,
    o.invocation ? details([
      ['Capability', `${o.capability} version ${o.version}`],
      ['Invocation', o.invocation],
    ]) : null);
}

// citations keeps what the web said apart from what the model says. An address is text; it opens only through the sheet.
function citations(list) {
  if (list.length === 0) return el('p', { class: 'small' }, 'Nothing was found.');
  return el('ol', { class: 'citations' }, ...list.map((c) => el('li', {},
    foreign('p', 'cite-title', c.title || c.url),
    foreign('p', 'cite-text', c.content),
    el('div', { class: 'cite-foot' },
      el('p', { class: 'cite-url', dir: 'ltr' }, c.url),
      el('button', { class: 'quiet small-button', type: 'button', 'aria-label': `Open ${c.title || c.url}…`, onclick: () => openSheet(c.url) }, 'Open…')))));
}

function details(rows) {
  const list = el('dl', {});
  for (const [name, value] of rows) {
    if (value) list.append(el('dt', {}, name), el('dd', { class: 'code', dir: 'ltr' }, value));
  }
  return el('details', {}, el('summary', {}, 'Details'), list);
}
