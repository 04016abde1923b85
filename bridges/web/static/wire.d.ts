// Made by .ci/wire_types.py from the server's messages: what each page may send. Not to be edited.

/** The first message: the token from the address, a name, and the session to go on with after a reload. */
export type PageHello = { t: "hello"; token: string; name?: string; session?: string };

/** The state number `n` has been drawn; with a camera, its frame `n`. */
export type FrameSeen = { t: "seen"; n: number; camera?: string };

/** The cameras that are on screen; none while the page is hidden. */
export type WatchCameras = { t: "watch"; cameras: Array<string> };

/** Something to be said. */
export type Say = { t: "say"; voice: "collaborator" | "robot"; text: string };

/** Take back the sentence of the robot that waits its moment (`undo_s` of the console). */
export type Unsay = { t: "unsay" };

/** The robot stops speaking, and nothing more is said of what waits. */
export type BeQuiet = { t: "quiet" };

/** How loud, fast and high the robot speaks; 1: as ever. */
export type SetVoice = { t: "voice"; volume?: number; speed?: number; pitch?: number };

/** Hear what the robot's microphone hears of people, or no more. */
export type ListenIn = { t: "listen"; on: boolean };

/** What the robot does by itself: find its zeros, or fold. */
export type AskRobot = { t: "service"; verb: "home" | "stow" };

/** Make an address of somebody's own, who is called so. */
export type InvitePerson = { t: "invite"; role: string; name: string };

/** Take that address back, and close the pages that it opened. */
export type RevokeInvite = { t: "revoke"; number: number };

/** What who sits here is called from now on. */
export type CallMe = { t: "call me"; name: string };

/** A person begins to speak into their microphone: the first sound is there. */
export type Talk = { t: "talk" };

/** What they go on to say: 16-bit samples at 16 kHz, lowest byte first, in base64. */
export type SoundPiece = { t: "sound"; pcm: string };

/** They have ended, and began so long ago; what is not wanted is forgotten. */
export type Talked = { t: "talked"; ago_s?: number; is_wanted?: boolean };

/** Stop, now. */
export type StopPressed = { t: "stop"; why?: string };

/** Lift the stop. */
export type Resume = { t: "resume" };

/** The emergency stop, which only an operator's re-arming lifts. */
export type Emergency = { t: "estop" };

/** Something worth finding again. */
export type NoteMark = { t: "mark"; label: string; note?: string };

/** Sit down on a seat; with `force` also where another operator sits. */
export type Take = { t: "take"; seat: "planner" | "policy" | "vlm"; force?: boolean };

/** Ask the one who sits there for the seat; where nobody does, it is taken. */
export type AskForSeat = { t: "ask"; seat: "planner" | "policy" | "vlm" };

/** Answer who asked for one's seat: it becomes theirs, or not. */
export type AnswerSeatRequest = { t: "answer"; seat: "planner" | "policy" | "vlm"; wish: number; is_granted: boolean };

/** Give the seat back to the model. */
export type Give = { t: "give"; seat: "planner" | "policy" | "vlm" };

/** What is held down right now; repeated every 50 ms while anything is, and good for nothing afterwards. */
export type Drive = { t: "drive"; ahead?: number; left?: number; aside?: number; scale?: number; jog?: { [key in string]?: number }; goals?: { [key in string]?: number }; hand?: { [key in "ahead" | "left" | "pitch" | "up" | "yaw"]?: number }; to?: { x_m: number; y_m: number; label?: string; colour?: string; heading_rad?: number | null } | null; do?: "go" | "put" | "take"; camera?: string; at_ms?: number };

/** On a seat: decide about the model's drafts (`on`), or choose oneself. `at_end`: when the time is up. */
export type Supervise = { t: "supervise"; on: boolean; seat?: "planner" | "vlm"; wait_s?: number; at_end?: "drop" | "send" };

/** What becomes of a draft; `edit` sends the text and the sentence given here instead. */
export type Decide = { t: "decide"; draft: number; do: "approve" | "edit" | "reject"; seat?: "planner" | "vlm"; text?: string; sentence?: string };

/** A subtask, as the planner. */
export type PlanRequest = { t: "plan"; text: string; verb?: "done" | "put" | "wait"; what?: string; where?: string; excluding?: Array<string>; sentence?: string };

/** An action, as the VLM, on one of the things seen. */
export type ActRequest = { t: "act"; skill: string; label?: string; colour?: string; x_m?: number; y_m?: number };

/** The experimenter begins, or goes on with, the session of a participant. */
export type BeginSession = { t: "begin"; number: number };

/** The participant consents; so many statements are ticked. */
export type Agree = { t: "agree"; ticked: number };

/** One answer, as soon as it is given. */
export type AnswerItem = { t: "answer"; step: string; item: string; value: string | number };

/** A questionnaire is filled in. */
export type Submit = { t: "submit"; step: string };

/** The experimenter starts the trial. */
export type StartTrial = { t: "start" };

/** The experimenter ends it. */
export type EndTrial = { t: "end"; how?: "aborted" | "completed" };

/** The experimenter lets the trial's time stand still, and the robot with it; or go on. */
export type PauseTrial = { t: "pause"; is_on: boolean };

/** The experimenter goes on to the next step. */
export type Skip = { t: "skip" };

/** The participant stops taking part. */
export type Withdraw = { t: "withdraw" };

/** The experimenter's words. */
export type ExperimenterNote = { t: "note"; text: string };

/** The participant says something. */
export type Speak = { t: "say"; text: string };

/** What the person does, as the answer to question number `ask`; with `to`, only they perceive it. */
export type Play = { t: "act"; ask: number; kind: "action" | "leave" | "non-verbal communication" | "none" | "speak"; text?: string; to?: Array<string> };

/** Which recording is to be rated, and by whom; no recording: back to the list. */
export type OpenRecording = { t: "open"; recording?: string; rater?: string };

/** Which moment is on screen. */
export type Seek = { t: "seek"; at_s: number };

/** A score and why; None takes the score back. */
export type RateRecording = { t: "rate"; name: string; dimension: string; score: number | null; rationale?: string };

export type FromConsole = PageHello | FrameSeen | WatchCameras | Say | Unsay | BeQuiet | SetVoice | ListenIn | AskRobot | InvitePerson | RevokeInvite | CallMe | Talk | SoundPiece | Talked | StopPressed | Resume | Emergency | NoteMark | Take | AskForSeat | AnswerSeatRequest | Give | Drive | Supervise | Decide | PlanRequest | ActRequest;

export type FromStudy = PageHello | FrameSeen | WatchCameras | BeginSession | Agree | AnswerItem | Submit | StartTrial | EndTrial | PauseTrial | Skip | Withdraw | ExperimenterNote | NoteMark | Speak | Talk | SoundPiece | Talked | StopPressed | Resume;

export type FromEpisode = PageHello | FrameSeen | WatchCameras | Play;

export type FromRecordings = PageHello | FrameSeen | WatchCameras | OpenRecording | Seek | RateRecording;
