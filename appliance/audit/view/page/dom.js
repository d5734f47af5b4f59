'use strict';
// Everything is below one name, since a page that was opened from a file cannot load modules.
globalThis.assent = {};

// el makes an element. Children are nodes or strings, and strings become text nodes: nothing here can turn what a model
// or a web site wrote into markup.
assent.el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return node;
};

assent.byID = (id) => document.getElementById(id);

// The icons are drawn here, so that no font and no file is needed: strokes in a square of 24.
assent.icon = (() => {
  const strokes = {
    good: 'M5 12.5 10 17.5 19 7',
    bad: 'M6 6 18 18M18 6 6 18',
    unknown: 'M8.5 9a3.5 3.5 0 1 1 5 3.2c-1 .6-1.5 1.2-1.5 2.6M12 18.2v.1',
    stop: 'M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M8.5 12h7',
    clock: 'M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M12 8v4.5l3 1.8',
    back: 'M9 7 5 11l4 4M5 11h8a5 5 0 0 1 5 5v1',
    open: 'M7 12h.1M12 12h.1M17 12h.1',
    torn: 'M12 6v7.5M12 17.5v.1',
  };
  const svg = 'http://www.w3.org/2000/svg';
  return (name) => {
    const node = document.createElementNS(svg, 'svg');
    for (const [key, value] of Object.entries({ viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true', focusable: 'false' })) node.setAttribute(key, value);
    const path = document.createElementNS(svg, 'path');
    path.setAttribute('d', strokes[name]);
    node.append(path);
    return node;
  };
})();

// foreign is text that somebody else wrote, kept apart from its surroundings in writing direction too.
assent.foreign = (tag, className, text) => assent.el(tag, { class: className, dir: 'auto' }, assent.marked(text ?? ''));

// marked shows what would not show itself: line ends and tabs as marks, and everything else that is drawn as nothing or
// that reorders its surroundings as its number.
assent.marked = (() => {
  const hidden = /(\r?\n|\t|(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}])/u;
  const marks = { '\n': ['⏎', 'new line', '\n'], '\r\n': ['⏎', 'new line', '\n'], '\t': ['⇥', 'tab', '\t'] };
  return (text) => {
    const out = document.createDocumentFragment();
    text.split(hidden).forEach((part, i) => {
      if (i % 2 === 0) {
        out.append(part);
      } else if (marks[part]) {
        const [mark, name, itself] = marks[part];
        out.append(assent.el('span', { class: 'mark', 'aria-label': name }, mark), itself);
      } else {
        out.append(assent.el('span', { class: 'mark boxed' }, `U+${part.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`));
      }
    });
    return out;
  };
})();

// bytes decodes base64.
assent.bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
