// What the microphone's button says, in English. The console's own, too.
export default {
  talk: "Talk",
  send: "Send",
  let_go: "Let go to send",
  hint: "Hold and speak, or tap to begin and tap again to send.",
  hint_keys: "Esc throws it away.",
  hint_touch: "Slide off the button to throw it away.",
  away: "Thrown away; only a stop in it would count.",
  insecure:
    "Talking needs https here: browsers open a microphone only on secure pages and on localhost. You can type instead.",
  no_sound: "This browser cannot record sound for a page. You can type instead.",
  deaf: "The robot does not understand speech at the moment. Please type.",
  soon: "The microphone is ready soon: hold the button again, and speak.",
  TimeoutError:
    "The browser starts no sound. Firefox wants something to play it on: connect a loudspeaker or headphones, then try again; or type.",
  NotAllowedError:
    "The browser does not let this page use the microphone. Allow it beside the address, then try again; or type.",
  NotFoundError: "There is no microphone at this computer. You can type instead.",
  NotReadableError: "The microphone cannot be opened; another program may have it. Try again, or type.",
  unusable: "The microphone cannot be used ({why}). You can type instead.",
  understood: "Understood: “{words}”",
  waiting: "Sent. Waiting for the words…",
  nothing: "Nothing was understood so far. Say it again, or type it.",
  lost: "The link is gone; that was not sent.",
  opening: "Opening the microphone…",
  listening: "Listening…",
  sending: "Sending…",
  mute: "The microphone gave nothing but silence. Is it muted?",
  gone: "The microphone is gone; that was not sent.",
};
