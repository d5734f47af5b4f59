// What is shown while this phone cannot chat: pairing, and what to do where pairing is impossible.

import { byID, el } from './dom.js';
import { told } from './words.js';

const show = (...nodes) => byID('setup').replaceChildren(...nodes.filter(Boolean));

// insecure is for a page that was opened without https: browsers then give it no keys.
export function insecure() {
  show(
    el('h2', {}, 'Open this page with https'),
    el('p', {}, 'This browser keeps keys only for pages that were opened with https, and without a key this phone cannot prove who it is.'),
    el('p', {}, 'Type this address, with the s:'),
    el('p', { class: 'address' }, `https://${location.host}/`));
}

// forgetful is for a browser that keeps nothing for this page, as in some private windows.
export function forgetful() {
  show(
    el('h2', {}, 'This browser keeps no key'),
    el('p', {}, 'This phone proves who it is by a key, and this browser keeps none for this page. Open the page in a window that is not private, and let it store site data.'));
}

// untrusted is for a phone that loads the page but refuses the live connection, as iPhones do with a certificate that
// nobody has vouched for.
export function untrusted(retry) {
  show(
    el('h2', {}, 'This phone does not trust the box yet'),
    el('p', {}, 'It shows the page but refuses the live connection. Some phones, iPhones above all, want the box’s certificate to be installed first.'),
    el('ol', { class: 'steps' },
      el('li', {}, 'Get the certificate: ', el('a', { class: 'button quiet', href: '/certificate.crt', download: 'assent.crt' }, 'Download')),
      el('li', {}, 'iPhone: Settings → General → VPN & Device Management → install it; then General → About → Certificate Trust Settings → switch it on.'),
      el('li', {}, 'Android: Settings → Security → Install a certificate → CA certificate.')),
    el('p', { class: 'small' }, 'The certificate is good for this box alone. If the name of the box does not work on this phone, use the number that its screen shows, as in https://192.168.1.20.'),
    el('button', { class: 'primary wide', type: 'button', onclick: retry }, 'Try again'));
}

// pairing asks for the code on the box's screen. pair(code, name, compare) resolves when somebody at the box has accepted;
// before that it calls compare with the digits that the box must show.
export function pairing(reason, pair) {
  const code = el('input', { id: 'code', name: 'code', required: true, maxlength: 16, autocomplete: 'off', spellcheck: 'false', inputmode: 'numeric' });
  const name = el('input', { id: 'name', name: 'name', required: true, maxlength: 24, autocomplete: 'off', dir: 'auto', placeholder: 'Anna’s phone' });
  const submit = el('button', { class: 'primary wide', type: 'submit' }, 'Pair this phone');
  const status = el('p', { class: 'pair-status', role: 'status' });
  const form = el('form', { class: 'pair' },
    el('label', { for: 'code' }, 'Code on the box’s screen'), code,
    el('label', { for: 'name' }, 'What to call this phone'), name,
    submit, status);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = code.readOnly = name.readOnly = true;
    status.className = 'pair-status waiting';
    status.textContent = 'One moment …';
    const compare = (keyCode) => {
      status.replaceChildren(
        'Now look at the box. Its screen must show this number and this phone’s name:',
        el('strong', { class: 'key-code' }, keyCode),
        'If it does, hold both buttons to accept this phone. If the number is another one, press deny: something in between replaced this phone’s key.');
      status.scrollIntoView({ block: 'nearest' });
    };
    try {
      await pair(code.value.replaceAll(/\s/g, ''), name.value.trim().normalize('NFC'), compare);
    } catch (error) {
      status.className = 'pair-status problem';
      status.textContent = told(error, 'this browser could not make a key; reload the page');
      submit.disabled = code.readOnly = name.readOnly = false;
      status.scrollIntoView({ block: 'nearest' });
    }
  });
  show(
    el('h2', {}, 'Pair this phone'),
    reason ? el('p', { class: 'problem' }, reason) : null,
    el('ol', { class: 'steps' },
      el('li', {}, 'At the box, hold both buttons for 3 seconds. Its screen shows a code.'),
      el('li', {}, 'Type the code here, and a name for this phone.'),
      el('li', {}, 'Compare the number that both show. If it is the same, hold both buttons at the box again to accept.')),
    form,
    el('p', { class: 'trust' }, 'A phone can ask and take back. Only a press at the box can approve.'));
}
