
  /* A sentence that is scored in the page, by the distilled weight of each of its terms. */
  const sentence = data.sentence;
  if (sentence) {
    const { classes, runs, step } = sentence, box = byId("try-text"), places = new Map();
    const frequencies = runs.flatMap(([n, size]) => Array(size).fill(n)), isNew = new Set(sentence.new);
    sentence.terms.split("\n").forEach((term, j) => places.set(term, j));

    /* Weights are numbers of 16 bits in base64, the low byte first: those of each output after the other. */
    const bytes = Uint8Array.from(atob(sentence.weights), (letter) => letter.charCodeAt(0)), view = new DataView(bytes.buffer);
    const weights = Array.from({ length: sentence.n_outputs }, (_, k) => Int16Array.from({ length: places.size }, (_, j) => view.getInt16(2 * (k * places.size + j), true)));

    /* Words as undrift cuts them: one form of letters and quotes, whole contractions, decimal numbers whole. */
    const listWords = (text) => {
      const plain = text.normalize("NFKC").toLowerCase().replace(/[\u2019\u2018\u02bc\u00b4\u2032`]/g, "'").replace(/[\u00ad\u200b-\u200f]/g, "")
        .replace(/''+/g, " ").replace(/(?<=\w)\s+(?=(?:n't|'(?:s|m|d|re|ve|ll))(?![\w']))/g, "")
        .replace(/\b(can)\s+(?=not\b)/g, "$1").replace(/\b(gon|wan)\s+(?=na\b)/g, "$1").replace(/\b(got)\s+(?=ta\b)/g, "$1");
      return plain.match(/\d+(?:[.,]\d+)+|[\p{L}\p{N}]+(?:\p{M}+[\p{L}\p{N}]*)*(?:'[\p{L}\p{N}]+)*|\p{Extended_Pictographic}/gu) || [];
    };
    /* Terms of a text with their tf-idf values; the values have length 1. */
    const listTerms = (words) => {
      const counts = new Map(), terms = [...words, ...words.slice(1).map((word, i) => `${words[i]} ${word}`)];
      for (const term of terms) if (places.has(term)) counts.set(term, (counts.get(term) || 0) + 1);
      const values = [...counts].map(([term, n]) => {
        const j = places.get(term), idf = 1 + Math.log((1 + sentence.n_documents) / (1 + frequencies[j]));
        return [term, j, (1 + Math.log(n)) * idf];
      });
      const length = Math.hypot(...values.map((value) => value[2])) || 1;
      return values.map(([term, j, value]) => [term, j, value / length]);
    };
    const score = () => {
      const words = listWords(box.value), terms = listTerms(words), nKnown = words.filter((word) => places.has(word)).length;
      byId("try-words").replaceChildren();
      if (!nKnown) { byId("try-result").textContent = words.length ? "No word of it is known, so nothing can be said." : ""; return; }
      const scores = sentence.intercept.map((start, k) => start + terms.reduce((sum, [, j, value]) => sum + value * step * weights[k][j], 0));
      const odds = (scores.length === 1 ? [0, ...scores] : scores).map((value) => value / sentence.temperature), top = Math.max(...odds);
      const chances = odds.map((value) => Math.exp(value - top)), total = chances.reduce((sum, value) => sum + value, 0);
      const code = odds.indexOf(top), order = chances.map((_, k) => k).sort((p, q) => chances[q] - chances[p]);
      const others = classes.length > 2 ? ` Then ${order.slice(1, 3).map((k) => `${nameClass(classes[k])} ${percent(chances[k] / total)}`).join(", ")}.` : "";
      say(byId("try-result"), `${nameClass(classes[code])}, probability ${percent(chances[code] / total)}.${others} ${nKnown} of ${plural(words.length, "word")} known.`);
      /* with two classes the second has the weights; with more, a weight counts beyond the mean of all classes */
      const push = (j, k) => weights.length === 1 ? (k ? 1 : -1) * weights[0][j] : weights[k][j] - weights.reduce((sum, own) => sum + own[j], 0) / weights.length;
      const moved = terms.map(([term, j, value]) => [term, j, value * step * push(j, code)]).sort((p, q) => Math.abs(q[2]) - Math.abs(p[2]));
      byId("try-words").replaceChildren(...moved.slice(0, 8).map(([term, j, by]) => {
        const toward = by > 0 ? code : classes.length === 2 ? 1 - code : -1;
        return make("span", { class: toward < 0 ? "chip" : `chip ${colourOf(toward, classes)}` }, isNew.has(j) ? "★ " : "", make("bdi", {}, term), " ", make("small", {}, `${by < 0 ? "\u2212" : "+"}${Math.abs(by).toFixed(2)}`));
      }));
    };
    box.addEventListener("input", score);
  }
