// el makes an element. Children are nodes or strings, and strings become text nodes: nothing here can turn what a model
// or a web site wrote into markup.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

export const byID = (id) => document.getElementById(id);

// foreign is text that somebody else wrote, kept apart from its surroundings in writing direction too.
export const foreign = (tag, className, text) => el(tag, { class: className, dir: 'auto' }, text ?? '');

// marked is literal text with its newlines and tabs made visible, as on the box's screen.
export function marked(text) {
  const out = document.createDocumentFragment();
  for (const part of text.split(/(\n|\t)/)) {
    if (part === '\n') out.append(el('span', { class: 'mark', 'aria-label': 'new line' }, '⏎'), '\n');
    else if (part === '\t') out.append(el('span', { class: 'mark', 'aria-label': 'tab' }, '⇥'), '\t');
    else out.append(part);
  }
  return out;
}
