// The connection to the box: the envelope, reconnecting, and resuming where it broke off. What the frames mean is
// app.js's business.

import { randomHex } from './keys.js';

const VERSION = 1;
const PING_EVERY = 15_000;
const SILENT_FOR = 40_000; // a phone that slept may hold a connection that is long gone
const WAIT_MIN = 500;
const WAIT_MAX = 10_000;

export class Wire extends EventTarget {
  #socket = null;
  #wait = WAIT_MIN;
  #timer = 0;
  #heard = 0;
  #everOpened = false;
  #failures = 0;
  #id = 0;
  #prefix = randomHex(4);
  #replies = new Map();

  session = '';
  last = 0;
  nonce = '';

  constructor() {
    super();
    setInterval(() => this.#keepAlive(), PING_EVERY);
    addEventListener('online', () => this.connect());
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#keepAlive();
    });
  }

  // connect opens a connection unless one is open or opening.
  connect() {
    clearTimeout(this.#timer);
    if (this.#socket && this.#socket.readyState <= WebSocket.OPEN) return;
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(`${scheme}//${location.host}/ws`);
    this.#socket = socket;
    socket.onopen = () => {
      this.#everOpened = true;
      this.#failures = 0;
      this.#heard = Date.now();
    };
    socket.onmessage = (event) => { if (socket === this.#socket) this.#receive(event.data); };
    socket.onclose = (event) => { if (socket === this.#socket) this.#closed(event); };
  }

  // reconnect drops the present connection, if any, and opens another.
  reconnect() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.connect();
  }

  #closed(event) {
    this.#socket = null;
    this.#failures++;
    for (const [, reply] of this.#replies) reply.reject({ code: 'offline', message: 'The connection to the box was lost.', retry: true });
    this.#replies.clear();
    this.dispatchEvent(new CustomEvent('down', {
      detail: { code: event.code, never: !this.#everOpened, failures: this.#failures },
    }));
    this.#timer = setTimeout(() => this.connect(), this.#wait + Math.random() * 250);
    this.#wait = Math.min(2 * this.#wait, WAIT_MAX);
  }

  #keepAlive() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.#heard > SILENT_FOR) this.reconnect();
    else this.#write('ping', undefined);
  }

  #receive(text) {
    this.#heard = Date.now();
    const frame = JSON.parse(text);
    if (frame.v !== VERSION) return;
    if (frame.type === 'welcome') this.#wait = WAIT_MIN;
    if (frame.type === 'challenge') this.nonce = frame.data.nonce;
    if (frame.type === 'snapshot') this.last = frame.seq ?? 0;
    else if (frame.seq) {
      if (frame.seq <= this.last) return; // seen before
      this.last = frame.seq;
    }
    const reply = this.#replies.get(frame.re);
    if (reply) {
      this.#replies.delete(frame.re);
      if (frame.type === 'error') reply.reject(frame.data);
      else reply.resolve(frame);
      if (frame.type === 'error' || frame.type === 'welcome' || frame.type === 'paired' || frame.type === 'pong') return;
    }
    this.dispatchEvent(new CustomEvent('frame', { detail: frame }));
  }

  #write(type, data) {
    const id = `${this.#prefix}.${++this.#id}`;
    this.#socket.send(JSON.stringify({ v: VERSION, id, type, ...(data === undefined ? {} : { data }) }));
    return id;
  }

  // tell sends a frame whose answer comes by itself, if at all. It says whether there was a connection to send it on.
  tell(type, data) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#write(type, data);
    return true;
  }

  // call sends a frame and resolves with the first frame that answers it, or rejects with {code, message, retry}.
  call(type, data) {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject({ code: 'offline', message: 'The box is not connected at the moment.', retry: true });
    }
    return new Promise((resolve, reject) => this.#replies.set(this.#write(type, data), { resolve, reject }));
  }
}
