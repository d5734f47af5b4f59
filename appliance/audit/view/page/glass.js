'use strict';
// The panel's pages, dot for dot: 128 by 64, in the layout of the display's memory. Byte page*128+column holds eight dots
// from top to bottom, lowest bit first.
{
  const WIDTH = 128;
  const HEIGHT = 64;
  const LIT = [217, 243, 234];
  const DARK = [5, 9, 11];

  assent.glass = (frame, label) => {
    const canvas = assent.el('canvas', { class: 'glass', width: WIDTH, height: HEIGHT, role: 'img', 'aria-label': label });
    const picture = new ImageData(WIDTH, HEIGHT);
    for (let y = 0; y < HEIGHT; y++) {
      for (let x = 0; x < WIDTH; x++) {
        const lit = frame[(y >> 3) * WIDTH + x] >> (y & 7) & 1;
        picture.data.set([...(lit ? LIT : DARK), 255], (y * WIDTH + x) * 4);
      }
    }
    canvas.getContext('2d').putImageData(picture, 0, 0);
    return canvas;
  };
}
