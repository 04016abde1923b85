// Made by .ci/wire_types.py from the server's messages: what each page may send. Not to be edited.

/** The first message: the code from the address, or the key that was given for it; a name; which loading of the page this is; and with a code the key that the same tab had before. */
export type PageHello = { t: "hello"; token: string; name?: string; page?: string; key?: string; press?: number };

/** The state number `n` has been drawn; with a camera, its frame `n`. */
export type FrameSeen = { t: "seen"; n: number; camera?: string; press?: number };

/** The cameras that are on screen; none while the page is hidden. */
export type WatchCameras = { t: "watch"; cameras: Array<string>; press?: number };

/** Something to be said, with the gestures that the robot makes once it says it. */
export type Say = { t: "say"; voice: "collaborator" | "robot"; text: string; acts?: Array<{ t: "act"; skill: string; label?: string; colour?: string; x_m?: number; y_m?: number; press?: number }>; press?: number };

/** Take back the sentence of the robot that waits its moment (`undo_s` of the console). */
export type Unsay = { t: "unsay"; press?: number };

/** The robot stops speaking, and nothing more is said of what waits. */
export type BeQuiet = { t: "quiet"; press?: number };

/** How loud, fast and high the robot speaks; 1: as ever. */
export type SetVoice = { t: "voice"; volume?: number; speed?: number; pitch?: number; press?: number };

/** Hear what the robot's microphone hears of people, or no more. */
export type ListenIn = { t: "listen"; on: boolean; press?: number };

/** What the robot does by itself: find its zeros, or fold. */
export type AskRobot = { t: "service"; verb: "home" | "stow"; press?: number };

/** Make an address of somebody's own, who is called so. */
export type InvitePerson = { t: "invite"; role: string; name: string; press?: number };

/** Take that address back, and close the pages that it opened. */
export type RevokeInvite = { t: "revoke"; number: number; press?: number };

/** What who sits here is called from now on. */
export type CallMe = { t: "call me"; name: string; press?: number };

/** A person begins to speak into their microphone: the first sound is there. */
export type Talk = { t: "talk"; press?: number };

/** What they go on to say: 16-bit samples at 16 kHz, lowest byte first, in base64. */
export type SoundPiece = { t: "sound"; pcm: string; press?: number };

/** They have ended, and began so long ago; what is not wanted is forgotten. */
export type Talked = { t: "talked"; ago_s?: number; is_wanted?: boolean; press?: number };

/** Stop, now. */
export type StopPressed = { t: "stop"; why?: string; press?: number };

/** Lift the stop. */
export type Resume = { t: "resume"; press?: number };

/** The emergency stop, which only an operator's re-arming lifts. */
export type Emergency = { t: "estop"; press?: number };

/** Something worth finding again. */
export type NoteMark = { t: "mark"; label: string; note?: string; press?: number };

/** Sit down on a seat; with `force` also where another operator sits. */
export type Take = { t: "take"; seat: "planner" | "policy" | "vlm"; force?: boolean; press?: number };

/** Ask the one who sits there for the seat; where nobody does, it is taken. */
export type AskForSeat = { t: "ask"; seat: "planner" | "policy" | "vlm"; press?: number };

/** Answer who asked for one's seat: it becomes theirs, or not. */
export type AnswerSeatRequest = { t: "answer"; seat: "planner" | "policy" | "vlm"; wish: number; is_granted: boolean; press?: number };

/** Give the seat back to the model. */
export type Give = { t: "give"; seat: "planner" | "policy" | "vlm"; press?: number };

/** What is held down right now; repeated every 50 ms while anything is, and good for nothing afterwards. */
export type Drive = { t: "drive"; ahead?: number; left?: number; aside?: number; scale?: number; jog?: { [key in string]?: number }; goals?: { [key in string]?: number }; hand?: { [key in "ahead" | "left" | "pitch" | "up" | "yaw"]?: number }; to?: { x_m: number; y_m: number; label?: string; colour?: string; heading_rad?: number | null } | null; do?: "go" | "put" | "take"; camera?: string; at_ms?: number; press?: number };

/** On a seat: decide about the model's drafts (`on`), or choose oneself. `at_end`: when the time is up. */
export type Supervise = { t: "supervise"; on: boolean; seat?: "planner" | "vlm"; wait_s?: number; at_end?: "drop" | "send"; press?: number };

/** What becomes of a draft; `edit` sends the text and the sentence given here instead. */
export type Decide = { t: "decide"; draft: number; do: "approve" | "edit" | "reject"; seat?: "planner" | "vlm"; text?: string; sentence?: string; press?: number };

/** A subtask, as the planner. */
export type PlanRequest = { t: "plan"; text: string; verb?: "done" | "put" | "wait"; what?: string; where?: string; excluding?: Array<string>; sentence?: string; press?: number };

/** An action, as the VLM, on one of the things seen. */
export type ActRequest = { t: "act"; skill: string; label?: string; colour?: string; x_m?: number; y_m?: number; press?: number };

/** The experimenter begins, or goes on with, the session of a participant. */
export type BeginSession = { t: "begin"; number: number; press?: number };

/** The participant consents; so many statements are ticked. */
export type Agree = { t: "agree"; ticked: number; press?: number };

/** One answer, as soon as it is given. */
export type AnswerItem = { t: "answer"; step: string; item: string; value: string | number; press?: number };

/** A questionnaire is filled in, on a page of that width. */
export type Submit = { t: "submit"; step: string; width_px?: number; press?: number };

/** The experimenter starts the trial. */
export type StartTrial = { t: "start"; press?: number };

/** The experimenter ends it. */
export type EndTrial = { t: "end"; how?: "aborted" | "completed"; press?: number };

/** The experimenter lets the trial's time stand still, and the robot with it; or go on. */
export type PauseTrial = { t: "pause"; is_on: boolean; press?: number };

/** The experimenter goes on to the next step. */
export type Skip = { t: "skip"; press?: number };

/** The participant stops taking part. */
export type Withdraw = { t: "withdraw"; press?: number };

/** The experimenter's words. */
export type ExperimenterNote = { t: "note"; text: string; press?: number };

/** The participant says something. */
export type Speak = { t: "say"; text: string; press?: number };

/** What the person does, as the answer to question number `ask`; with `to`, only they perceive it. */
export type Play = { t: "act"; ask: number; kind: "action" | "leave" | "non-verbal communication" | "none" | "speak"; text?: string; to?: Array<string>; press?: number };

/** Which recording is to be rated, and by whom; no recording: back to the list. */
export type OpenRecording = { t: "open"; recording?: string; rater?: string; press?: number };

/** Which moment is on screen. */
export type Seek = { t: "seek"; at_s: number; press?: number };

/** A score and why; None takes the score back. */
export type RateRecording = { t: "rate"; name: string; dimension: string; score: number | null; rationale?: string; press?: number };

export type FromConsole = PageHello | FrameSeen | WatchCameras | Say | Unsay | BeQuiet | SetVoice | ListenIn | AskRobot | InvitePerson | RevokeInvite | CallMe | Talk | SoundPiece | Talked | StopPressed | Resume | Emergency | NoteMark | Take | AskForSeat | AnswerSeatRequest | Give | Drive | Supervise | Decide | PlanRequest | ActRequest;

export type FromStudy = PageHello | FrameSeen | WatchCameras | BeginSession | Agree | AnswerItem | Submit | StartTrial | EndTrial | PauseTrial | Skip | Withdraw | ExperimenterNote | NoteMark | Speak | Talk | SoundPiece | Talked | StopPressed | Resume;

export type FromEpisode = PageHello | FrameSeen | WatchCameras | Play;

export type FromRecordings = PageHello | FrameSeen | WatchCameras | OpenRecording | Seek | RateRecording;
