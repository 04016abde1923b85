// What the page knows, and what is chosen on it: shared by the console's parts.
export const now = {
  /** @type {import("/static/link.js").Link<import("/static/wire").FromConsole>} */
  link: null,
  welcome: null,
  state: null, // the newest, with when it came
  selected: null, // a thing seen
  spot: null, // a place on the floor, to go to
  large: "head", // the camera by which somebody drives
  holding: null, // what is held down
  library: null, // postures, places and motions
};
export const isOperator = () => now.welcome?.role === "operator";
export const hasHead = () => now.welcome.joints.some((joint) => joint.name === "head_pan");
