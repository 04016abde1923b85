// What the microphone's button says, in German. Our own translation, not validated.
export default {
  talk: "Sprechen",
  send: "Senden",
  let_go: "Loslassen zum Senden",
  hint: "Halten und sprechen, oder antippen und zum Senden noch einmal antippen.",
  hint_keys: "Esc verwirft es.",
  hint_touch: "Vom Knopf wegziehen verwirft es.",
  away: "Verworfen; nur ein Halt darin würde zählen.",
  insecure:
    "Zum Sprechen braucht es hier https: Browser öffnen ein Mikrofon nur auf sicheren Seiten. Sie können stattdessen tippen.",
  no_sound: "Dieser Browser kann für eine Seite keinen Ton aufnehmen. Sie können stattdessen tippen.",
  deaf: "Der Roboter versteht gerade keine Sprache. Bitte tippen Sie.",
  soon: "Das Mikrofon ist gleich bereit: Halten Sie den Knopf noch einmal und sprechen Sie.",
  TimeoutError:
    "Der Browser startet keinen Ton. Schließen Sie einen Lautsprecher oder Kopfhörer an und versuchen Sie es noch einmal, oder tippen Sie.",
  NotAllowedError:
    "Der Browser lässt diese Seite nicht ans Mikrofon. Erlauben Sie es neben der Adresse und versuchen Sie es noch einmal, oder tippen Sie.",
  NotFoundError: "An diesem Gerät ist kein Mikrofon. Sie können stattdessen tippen.",
  NotReadableError:
    "Das Mikrofon lässt sich nicht öffnen; vielleicht benutzt es ein anderes Programm. Versuchen Sie es noch einmal, oder tippen Sie.",
  unusable: "Das Mikrofon lässt sich nicht benutzen ({why}). Sie können stattdessen tippen.",
  understood: "Verstanden: „{words}“",
  waiting: "Gesendet. Die Worte kommen gleich …",
  nothing: "Bisher wurde nichts verstanden. Sagen Sie es noch einmal, oder tippen Sie es.",
  lost: "Die Verbindung ist unterbrochen; das wurde nicht gesendet.",
  opening: "Das Mikrofon wird geöffnet …",
  listening: "Hört zu …",
  sending: "Wird gesendet …",
  mute: "Vom Mikrofon kam nur Stille. Ist es stumm geschaltet?",
  gone: "Das Mikrofon ist weg; das wurde nicht gesendet.",
  too_fast: "Nicht so schnell: Das wurde nicht gesagt.",
  too_short: "Das war zu kurz. Halten Sie die Taste, solange Sie sprechen.",
  cut_off: "Der Ton brach unterwegs ab; das wurde nicht gesagt.",
  not_heard: "Im Moment hört niemand zu; das wurde nicht gesagt.",
};
