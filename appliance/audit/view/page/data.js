'use strict';
// The data come as scripts that call about, rows and stories. Each story stays JSON until it is opened.
{
  const chunks = new Map(); // number to {resolve, promise}

  assent.all = []; // rows in the order in which they were told
  assent.about = (json) => { assent.log = JSON.parse(json); };

  assent.rows = (lines) => {
    let newest = -1;
    let place = 0;
    for (const [id, first, kind, outcome, unix, clock, since, headline, capability, phone, destination, sealed, chunk] of JSON.parse(`[${lines.join(',')}]`)) {
      place = chunk === newest ? place + 1 : 0;
      newest = chunk;
      assent.all.push({ id, first, kind, outcome, unix, clock, since, headline, capability, phone, destination, sealed, chunk, place });
    }
  };

  assent.stories = (chunk, lines) => chunks.get(chunk)?.resolve(lines);

  // Where the browser asks for it, only a file of stories can be loaded.
  const policy = globalThis.trustedTypes?.createPolicy('assent', {
    createScriptURL(url) {
      if (!/^data\/stories-[0-9]{4,8}\.js$/.test(url)) throw new TypeError('not a file of stories');
      return url;
    },
  });

  const load = (chunk) => {
    if (chunks.has(chunk)) return chunks.get(chunk).promise;
    const entry = {};
    entry.promise = new Promise((resolve, reject) => {
      entry.resolve = resolve;
      const url = `data/stories-${String(chunk).padStart(4, '0')}.js`;
      const script = document.createElement('script');
      script.addEventListener('error', () => { chunks.delete(chunk); reject(new Error('This part of the record cannot be loaded. Reload the page; if that does not help, the copy is damaged.')); });
      script.src = policy ? policy.createScriptURL(url) : url;
      document.head.append(script);
    });
    chunks.set(chunk, entry);
    return entry.promise;
  };

  // story loads a row's story.
  assent.story = async (row) => {
    if (row.missing) throw new Error(`No event of this record begins with entry ${row.first}. It may be in a newer copy, or have been pruned.`);
    return JSON.parse((await load(row.chunk))[row.place]);
  };
}
