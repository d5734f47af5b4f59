// The one place where an address can be opened: it shows all of it, and asks.

import { byID } from './dom.js';

export function openSheet(text) {
  const sheet = byID('sheet');
  const open = byID('sheet-open');
  let url = null;
  try {
    url = new URL(text);
  } catch {
    // shown as it is, and not to be opened
  }
  const safe = url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && !url.username && !url.password;
  byID('sheet-host').textContent = safe ? url.host : 'This address cannot be opened.';
  // What the browser would open and what is shown must be the same text.
  byID('sheet-url').textContent = safe ? url.href : text;
  open.hidden = !safe;
  if (safe) open.setAttribute('href', url.href);
  else open.removeAttribute('href');
  sheet.showModal();
  byID('sheet-close').focus();
}

export function setUpSheet() {
  const sheet = byID('sheet');
  const close = () => sheet.close();
  byID('sheet-close').addEventListener('click', close);
  byID('sheet-open').addEventListener('click', close);
  sheet.addEventListener('click', (event) => { if (event.target === sheet) close(); });
  sheet.addEventListener('close', () => byID('sheet-open').removeAttribute('href'));
}
