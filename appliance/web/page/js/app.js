// The page: what the frames mean, and what the buttons do.

import * as keys from './keys.js';
import * as setup from './setup.js';
import { About, shorter } from './about.js';
import { byID, el, foreign } from './dom.js';
import { Record } from './record.js';
import { setUpSheet } from './sheet.js';
import { View } from './view.js';
import { Wire } from './wire.js';
import { sentence, told } from './words.js';

const SUGGESTIONS = ['How is the box doing?', 'How tall is the Eiffel Tower? Look it up.', 'What can you do?'];

const wire = new Wire();
const view = new View((invocation) => wire.tell('deny', { invocation }) || toast('The box is not connected at the moment.'));
const record = new Record();
const about = new About(record, { seen, accept, refresh });
let me; // {keys, slot, name}, where this phone is paired
let conversation = '';
let counter = 0; // the highest that the box has seen
let ready = false;

function screen(name) {
  for (const id of ['chat', 'composer', 'new', 'record']) byID(id).hidden = name !== 'chat';
  byID('setup').hidden = name !== 'setup';
  if (name !== 'chat') byID('lost').hidden = true;
}

function state(name, ...text) {
  byID('state').dataset.state = name;
  byID('state').replaceChildren(...text);
}

// banner shows a lasting notice, or takes it away where there is no text.
function banner(id, text, tone = 'warn') {
  const old = document.getElementById(`banner-${id}`);
  const node = text ? el('p', { class: `banner ${tone}`, id: `banner-${id}` }, text) : null;
  if (old && node) old.replaceWith(node);
  else if (old) old.remove();
  else if (node) byID('banners').append(node);
}

let toastTimer = 0;
function toast(text) {
  banner('toast', text, 'info');
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => banner('toast', ''), 6000);
}

const say = (text) => { byID('spoken').textContent = text; };

function busy() {
  const open = Boolean(view.openTurn);
  byID('stop').hidden = !open;
  byID('send').hidden = open;
  byID('send').disabled = !ready;
}

async function hello() {
  const remembered = await keys.remembered();
  const request = { slot: me.slot, sig: await keys.signHello(me.keys, me.slot, wire.nonce), last: wire.last, session: wire.session, conversation };
  let welcome;
  try {
    welcome = (await wire.call('hello', request)).data;
  } catch (error) {
    if (error.code === 'not_paired') {
      pairing(told(error));
    } else if (error.code !== 'offline') {
      state('offline', 'Not ready');
      banner('hello', told(error));
      setTimeout(() => wire.reconnect(), 1000);
    }
    return;
  }
  if (!welcome.resumed) wire.last = 0;
  wire.session = welcome.session;
  counter = welcome.counter;
  view.phone = welcome.name;
  ready = true;
  screen('chat');
  state('online', 'Connected', ...(welcome.model ? [' · ', foreign('span', '', welcome.model)] : []));
  for (const id of ['hello', 'offline', 'frozen', 'guard', 'display', 'courier', 'audit', 'fixture']) banner(id, ''); // what still holds is said again
  banner('scripted', welcome.scripted ? 'Not a language model: this recites a test script.' : '');
  busy();
  about.slot = me.slot;
  about.inbox = { items: [], older: 0 }; // what nobody has seen is said again
  await record.take(welcome, remembered);
  warn();
}

// refresh shows the record as it is after what has just been done.
async function refresh() {
  const remembered = await keys.remembered();
  let now;
  try {
    now = (await wire.call('record')).data;
  } catch {
    return; // not connected, or no guard: the next welcome brings it
  }
  if (await record.take(now, remembered)) warn();
}

// warn says what has become of the record, for as long as the person has not said that they know.
function warn() {
  const { memory } = record;
  banner('shorter', memory?.shorter ? `${shorter(memory)} Tap Record to see what you can do.` : '', 'stop');
  about.show();
}

async function accept() {
  await record.accept();
  warn();
}

async function seen(invocation) {
  const sig = await keys.signSeen(me.keys, me.slot, invocation);
  await wire.call('seen', { invocation, sig });
}

function pairing(reason) {
  ready = false;
  screen('setup');
  state('online', 'Connected, not paired');
  setup.pairing(reason, async (code, name, compare) => {
    const pair = await keys.makeKeys();
    const key = await keys.publicPoint(pair);
    compare(await keys.keyCode(code, key));
    const { data } = await wire.call('pair', { code, name, key });
    me = { keys: pair, slot: data.slot, name: data.name };
    await keys.saveIdentity(me);
    await hello();
  });
}

const notices = {
  frozen: (text) => banner('frozen', text, 'stop'),
  unfrozen: (text) => { banner('frozen', ''); toast(text); },
  guard_lost: (text) => banner('guard', text),
  guard_back: (text) => { banner('guard', ''); toast(text); },
  display_lost: (text) => banner('display', text, 'stop'),
  display_back: (text) => { banner('display', ''); toast(text); },
  courier_lost: (text) => banner('courier', text),
  courier_back: () => banner('courier', ''),
  audit_lost: (text) => banner('audit', text, 'stop'),
  audit_full: (text) => banner('audit', text, 'stop'),
  audit_damaged: (text) => banner('audit', text, 'stop'),
  audit_back: (text) => { banner('audit', ''); toast(text); },
  fixture: (text) => banner('fixture', text),
};

const mine = {
  turn: (data) => view.began(data),
  text: (data) => view.text(data),
  pending: (data) => {
    view.pending(data);
    say(data.decided ? 'Approved at the box. It is under way.' : 'Look at the box. Something waits for a press there.');
    if (!data.decided) navigator.vibrate?.(200);
  },
  result: (data) => { view.result(data); say(''); refresh(); },
  turn_end: (data) => { view.ended(data); say('The answer is complete.'); refresh(); },
  snapshot: (data) => { view.snapshot(data); if (!data.pending.length) say(''); },
};

wire.addEventListener('frame', async ({ detail: frame }) => {
  const { type, data } = frame;
  if (type === 'challenge') {
    byID('box').textContent = data.box;
    document.title = data.box;
    if (me) await hello();
    else pairing('');
  } else if (type === 'notice') {
    (notices[data.class] ?? toast)(sentence(data.message));
  } else if (type === 'inbox') {
    about.inbox = data;
    about.show();
  } else if (type === 'error') {
    toast(told(data));
  } else if (mine[type] && data.conversation === conversation) {
    mine[type](data);
    busy();
  }
});

let offlineTimer = 0;
wire.addEventListener('down', async ({ detail }) => {
  ready = false;
  busy();
  state('connecting', 'Reconnecting…');
  clearTimeout(offlineTimer);
  offlineTimer = setTimeout(() => {
    if (byID('state').dataset.state === 'connecting') {
      state('offline', 'Offline');
      banner('offline', 'The box cannot be reached. It is tried again by itself; check that this phone is in the home network.');
    }
  }, 2500);
  if (detail.never && detail.failures >= 2 && await pageAnswers()) {
    screen('setup');
    setup.untrusted(() => wire.connect());
  }
});

const pageAnswers = () => fetch('/healthz', { cache: 'no-store' }).then((answer) => answer.ok, () => false);

async function ask(text) {
  if (new TextEncoder().encode(text).length > 8192) {
    toast('The question is too long; 8 KiB is the most that the box takes.');
    return;
  }
  byID('question').value = '';
  grow();
  const bubble = view.asked(text);
  try {
    const number = await keys.nextCounter(counter);
    const sig = await keys.signAsk(me.keys, me.slot, conversation, number, text);
    await wire.call('ask', { conversation, counter: number, text, sig });
  } catch (error) {
    bubble.fail(told(error, 'the question could not be signed; reload the page'));
    if (!byID('question').value) byID('question').value = text;
    grow();
  }
}

function grow() {
  const field = byID('question');
  field.style.height = 'auto';
  field.style.height = `${Math.min(field.scrollHeight + 2, 160)}px`;
}

async function begin() {
  conversation = keys.randomHex(16);
  await keys.saveConversation(conversation);
  view.clear();
  busy();
}

function setUpControls() {
  const question = byID('question');
  const submit = () => {
    const text = question.value.trim().normalize('NFC');
    if (text && ready && !view.openTurn) ask(text);
  };
  byID('composer').addEventListener('submit', (event) => { event.preventDefault(); submit(); });
  question.addEventListener('input', grow);
  question.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); submit(); }
  });
  byID('stop').addEventListener('click', () => wire.tell('cancel', { conversation }));
  byID('new').addEventListener('click', async () => {
    if (view.openTurn) wire.tell('cancel', { conversation });
    await begin();
    question.focus();
  });
  byID('suggestions').replaceChildren(...SUGGESTIONS.map((text) =>
    el('li', {}, el('button', { class: 'suggestion', type: 'button', onclick: () => { if (ready) ask(text); } }, text))));
  setUpSheet();
}

async function main() {
  setUpControls();
  if (!keys.usable()) {
    screen('setup');
    state('offline', 'Cannot connect');
    setup.insecure();
    return;
  }
  try {
    me = await keys.identity();
    conversation = await keys.conversation() ?? '';
    if (!conversation) await begin();
  } catch {
    screen('setup');
    state('offline', 'Cannot connect');
    setup.forgetful();
    return;
  }
  view.clear();
  wire.connect();
}

main();
