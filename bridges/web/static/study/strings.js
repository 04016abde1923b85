// The page's words in one language, from a file of that language; {name} in them is filled in.
import { fill } from "/static/words.js";
import english from "/static/study/strings_en.js";
import talking from "/static/speech/talk_en.js";

export let words = english,
  talkWords = talking;

// The language in which this browser was spoken to last.
const KEPT = "language",
  LANGUAGES = ["en", "de", "es", "ja"];
export const remembered = LANGUAGES.find((one) => one === localStorage.getItem(KEPT)) ?? "en";

export async function speak(language) {
  words = (await import(`/static/study/strings_${language}.js`)).default;
  talkWords = (await import(`/static/speech/talk_${language}.js`)).default;
  document.documentElement.lang = language;
  localStorage.setItem(KEPT, language);
}
export { fill };
