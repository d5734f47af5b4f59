// A readable table of a capability's own result.

import { el, foreign } from './dom.js';
import { seconds } from './words.js';

const size = (n) => {
  let unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    unit++;
  }
  return `${n.toFixed(unit > 1 ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
};

const span = (s) => {
  if (s < 3600) return seconds(Math.round(s));
  const hours = Math.floor(s / 3600);
  return hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`;
};

// A unit at the end of a name says how to write its number.
const units = [
  [/_bytes$/, size],
  [/_kib$/, (n) => size(n * 1024)],
  [/_mib$/, (n) => size(n * 1024 * 1024)],
  [/(_seconds|_s)$/, span],
  [/(_celsius|_c)$/, (n) => `${n.toFixed(1)} °C`],
  [/(_percent|_pct)$/, (n) => `${n.toFixed(0)} %`],
];

const labels = {
  cpu_count: 'Processors',
  load_1_min: 'Load, last minute',
  load_5_min: 'Load, last 5 minutes',
  load_15_min: 'Load, last 15 minutes',
  disk_total_mib: 'Storage, all',
  disk_free_mib: 'Storage, free',
  memory_total_mib: 'Memory, all',
  memory_available_mib: 'Memory, free',
  under_voltage: 'Power too weak now',
  under_voltage_since_start: 'Power was too weak',
};

const label = (name) => {
  if (labels[name]) return labels[name];
  const plain = units.reduce((text, [pattern]) => text.replace(pattern, ''), name).replaceAll(/[_.]/g, ' ');
  return plain.charAt(0).toUpperCase() + plain.slice(1);
};

function cell(name, value) {
  if (typeof value === 'number') {
    const unit = units.find(([pattern]) => pattern.test(name));
    return unit ? unit[1](value) : value.toLocaleString(undefined, { maximumFractionDigits: 2 });
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value === null ? '–' : String(value);
}

function* rows(value, path = []) {
  if (value !== null && typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      const plain = key.replace(/_seconds$/, '');
      if (plain !== key && plain in value) continue; // said in words already
      yield* rows(inner, Array.isArray(value) ? [...path, String(Number(key) + 1)] : [...path, key]);
    }
    return;
  }
  yield [path, value];
}

export function table(data) {
  const body = el('tbody', {});
  for (const [path, value] of rows(data)) {
    const name = path.at(-1) ?? '';
    body.append(el('tr', {}, foreign('th', '', path.map(label).join(' · ')), foreign('td', '', cell(name, value))));
  }
  for (const head of body.querySelectorAll('th')) head.setAttribute('scope', 'row');
  return body.children.length ? el('table', {}, body) : el('p', { class: 'small' }, 'Done.');
}
