/* What direct.py and shared_memory.py do at each image, in C: the same bytes, locks and results, in fewer steps.

   It is optional. Where it was not built, or POLYRHYTHM_NATIVE=0 says so, the Python beside it does all of this; the
   same tests run over both. The layout of a segment and of a packet is theirs: a header of 4096 bytes (what it is,
   slots, bytes of a slot, then from byte 64 on a generation for each slot), then the slots. Who uses a slot holds a
   lock of the open file on the byte of its number, shared to read, exclusive to write.

   Ring      the writing side of a segment: which slot next, fill it, and tell receivers where it lies
   Map       the reading side of a segment
   View      one slot of a Map: bytes to read, locked for as long as the object lives
   receive   one packet from a socket, and the view that it speaks of
   Pipe      the reading side of a pipe of events: all that waits in one call, opened
   offer     one event to a pipe, and whether there was room
   Opener    from the document of a message to the message with its envelope, for one topic

   The interpreter's lock guards all of it. It is let go of only while bytes are copied into a slot that is in no list. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one file serves CPython 3.11 and all later ones */
#define _GNU_SOURCE
#include <Python.h>
#undef Py_RETURN_NONE /* headers from 3.12 on take no reference, since None lives for ever there; in 3.11 it does not.
                         So no Py_RETURN_TRUE or _FALSE either. */
#define Py_RETURN_NONE return Py_NewRef(Py_None)
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER_BYTES 4096
#define GENERATIONS 64
#define MAGIC "polyrhythm-slots"
#define MOST_SLOTS 256
#define KEY_BYTES 48
#define LARGEST_PACKET (60 << 10)
#define RECEIVE_BYTES (64 << 10)
#define PIPE_BYTES (16 << 10) /* taken from a pipe at once */
#define LENGTH_BYTES 2 /* before each packet of a pipe, little-endian */
#define MOST_PARTS 64
#define KEPT_BYTES 120
#define MOST ((int64_t)1 << 62) /* of any number in an envelope */
enum { PLAIN = 0, SLOT = 3 };

/* Behind the mark SLOT of a message with one array: segment, slot, generation, number of arrays, bytes of the array.
   Copied field by field: it is packed and little-endian, as are all machines that have this file. */
typedef struct __attribute__((packed)) {
    char segment[KEY_BYTES];
    uint16_t slot;
    uint64_t generation;
    uint8_t arrays;
    uint64_t size;
} Place;

/* A lock of this open file on one byte; 0 where somebody else's stands in the way. Never waits. */
static int lock(int fd, short kind, uint64_t byte) {
    struct flock one = {.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &one) == 0;
}

static uint64_t *generation_of(char *base, uint64_t slot) { return (uint64_t *)(base + GENERATIONS + 8 * slot); }

static PyTypeObject *view_type; /* made once with the module, as the names */
static PyObject *open_name, *is_new_name;

/* Exported by 3.11 as well, though its headers name it in the limited API from 3.12 on only. */
PyObject *PyObject_Vectorcall(PyObject *callable, PyObject *const *args, size_t number, PyObject *names);

/* ---- Map and View: the reading side */

typedef struct {
    PyObject_HEAD
    int fd;
    char *base;
    uint64_t length, slots, capacity;
    uint32_t views[MOST_SLOTS]; /* living ones of each slot: the first takes the lock, the last lets go */
} Map;

typedef struct {
    PyObject_HEAD
    Map *map;
    uint64_t slot, size;
} View;

static PyObject *map_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    const char *path;
    struct stat status;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
    Map *map = (Map *)PyType_GenericAlloc(type, 0);
    if (!map) return NULL;
    map->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (map->fd < 0 || fstat(map->fd, &status)) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
        Py_DECREF((PyObject *)map);
        return NULL;
    }
    if (status.st_uid != getuid() || status.st_size <= HEADER_BYTES) goto none;
    map->length = (uint64_t)status.st_size;
    char *base = mmap(NULL, map->length, PROT_READ, MAP_SHARED, map->fd, 0);
    if (base == MAP_FAILED) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
        Py_DECREF((PyObject *)map);
        return NULL;
    }
    map->base = base;
    memcpy(&map->slots, base + 16, 8);
    memcpy(&map->capacity, base + 24, 8);
    if (memcmp(base, MAGIC, 16) || map->slots > MOST_SLOTS || map->capacity > map->length ||
        HEADER_BYTES + map->slots * map->capacity != map->length)
        goto none;
    return (PyObject *)map;
none:
    Py_DECREF((PyObject *)map);
    PyErr_SetString(PyExc_ValueError, "not a segment of this user");
    return NULL;
}

static void map_dealloc(Map *map) {
    PyTypeObject *type = Py_TYPE((PyObject *)map);
    if (map->base) munmap(map->base, map->length);
    if (map->fd >= 0) close(map->fd);
    PyObject_Free(map);
    Py_DECREF((PyObject *)type);
}

/* The view of a slot, or None (a new reference) where it has been written anew; NULL with ValueError: no such place. */
static PyObject *view_of(Map *map, uint64_t slot, uint64_t generation, uint64_t size) {
    if (slot >= map->slots || size > map->capacity) {
        PyErr_SetString(PyExc_ValueError, "no such place in the segment");
        return NULL;
    }
    if (!map->views[slot] && !lock(map->fd, F_RDLCK, slot)) Py_RETURN_NONE;
    if (__atomic_load_n(generation_of(map->base, slot), __ATOMIC_ACQUIRE) != generation) {
        if (!map->views[slot]) lock(map->fd, F_UNLCK, slot);
        Py_RETURN_NONE;
    }
    View *view = (View *)PyType_GenericAlloc(view_type, 0);
    if (!view) {
        if (!map->views[slot]) lock(map->fd, F_UNLCK, slot);
        return NULL;
    }
    Py_INCREF((PyObject *)map);
    map->views[slot]++;
    view->map = map;
    view->slot = slot;
    view->size = size;
    return (PyObject *)view;
}

static PyObject *map_view(PyObject *self, PyObject *args) {
    unsigned long long slot, generation, size;
    if (!PyArg_ParseTuple(args, "KKK", &slot, &generation, &size)) return NULL;
    return view_of((Map *)self, slot, generation, size);
}

static void view_dealloc(View *view) {
    PyTypeObject *type = Py_TYPE((PyObject *)view);
    Map *map = view->map;
    if (map && !--map->views[view->slot]) lock(map->fd, F_UNLCK, view->slot);
    Py_XDECREF((PyObject *)map);
    PyObject_Free(view);
    Py_DECREF((PyObject *)type);
}

static int view_buffer(View *view, Py_buffer *buffer, int flags) {
    char *bytes = view->map->base + HEADER_BYTES + view->slot * view->map->capacity;
    return PyBuffer_FillInfo(buffer, (PyObject *)view, bytes, (Py_ssize_t)view->size, 1, flags);
}

static Py_ssize_t view_length(PyObject *self) { return (Py_ssize_t)((View *)self)->size; }

/* ---- Ring: the writing side */

typedef struct {
    PyObject_HEAD
    int fd;
    Py_buffer map;
    uint64_t most, capacity, made;
    uint64_t first, waiting;           /* of `ring`: where the oldest is, and how many there are */
    uint64_t ring[MOST_SLOTS];         /* slots that may be written again, oldest first */
    int64_t announced_ns[MOST_SLOTS];
    uint64_t allocated[MOST_SLOTS];    /* bytes that are really there */
} Ring;

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    int fd;
    PyObject *map;
    unsigned long long slots, capacity;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "iOKK", &fd, &map, &slots, &capacity)) return NULL;
    Ring *ring = (Ring *)PyType_GenericAlloc(type, 0);
    if (!ring) return NULL;
    if (PyObject_GetBuffer(map, &ring->map, PyBUF_WRITABLE)) {
        Py_DECREF((PyObject *)ring);
        return NULL;
    }
    if (!slots || slots > MOST_SLOTS || capacity > (uint64_t)ring->map.len ||
        HEADER_BYTES + slots * capacity > (uint64_t)ring->map.len) {
        Py_DECREF((PyObject *)ring);
        PyErr_SetString(PyExc_ValueError, "the segment is smaller than its slots");
        return NULL;
    }
    ring->fd = fd;
    ring->most = slots;
    ring->capacity = capacity;
    return (PyObject *)ring;
}

static void ring_dealloc(Ring *ring) {
    PyTypeObject *type = Py_TYPE((PyObject *)ring);
    if (ring->map.obj) PyBuffer_Release(&ring->map);
    PyObject_Free(ring);
    Py_DECREF((PyObject *)type);
}

static void append(Ring *ring, uint64_t slot) { ring->ring[(ring->first + ring->waiting++) % ring->most] = slot; }

/* A slot announced before `oldest_ns` that nobody looks at, locked; -1 where there is none. */
static int64_t free_one(Ring *ring, int64_t oldest_ns) {
    for (uint64_t left = ring->waiting; left; left--) {
        uint64_t slot = ring->ring[ring->first];
        if (ring->announced_ns[slot] > oldest_ns) return -1; /* those behind it are younger, or were in use */
        ring->first = (ring->first + 1) % ring->most;
        ring->waiting--;
        if (lock(ring->fd, F_WRLCK, slot)) return (int64_t)slot;
        append(ring, slot); /* somebody looks at it: leave it in peace for a round */
    }
    return -1;
}

/* One announced longer ago than the grace, else a new one, else the oldest free one, locked; -1: all are in use. */
static int64_t take_slot(Ring *ring, int64_t now_ns, int64_t grace_ns) {
    int64_t slot = free_one(ring, now_ns - grace_ns);
    if (slot < 0 && ring->made < ring->most) {
        slot = (int64_t)ring->made++;
        lock(ring->fd, F_WRLCK, (uint64_t)slot);
    }
    return slot < 0 ? free_one(ring, now_ns) : slot;
}

/* Copy arrays into a slot that this thread has taken; its new generation, or 0 with errno where there is no memory. */
static uint64_t fill(Ring *ring, uint64_t slot, const Py_buffer *parts, const uint64_t *offsets, int count,
                     uint64_t size) {
    char *base = ring->map.buf, *start = base + HEADER_BYTES + slot * ring->capacity;
    uint64_t generation = 0;
    int problem = 0;
    Py_BEGIN_ALLOW_THREADS
    if (size > ring->allocated[slot]) { /* else a full folder would be a SIGBUS in the copy below */
        problem = posix_fallocate(ring->fd, (off_t)(start - base), (off_t)size);
        if (!problem) ring->allocated[slot] = size;
    }
    if (!problem) {
        generation = *generation_of(base, slot) + 1;
        __atomic_store_n(generation_of(base, slot), generation, __ATOMIC_RELEASE);
        for (int i = 0; i < count; i++) memcpy(start + offsets[i], parts[i].buf, (size_t)parts[i].len);
    }
    Py_END_ALLOW_THREADS
    errno = problem;
    return generation;
}

/* Let readers in, and put the slot behind the others. */
static void release(Ring *ring, uint64_t slot, int64_t announced_ns) {
    ring->announced_ns[slot] = announced_ns;
    lock(ring->fd, F_UNLCK, slot);
    append(ring, slot);
}

/* store(arrays, offsets, size, now_ns, grace_ns) -> (slot, generation) | None; raises OSError */
static PyObject *ring_store(PyObject *self, PyObject *args) {
    Ring *ring = (Ring *)self;
    PyObject *arrays, *offsets, *found = NULL;
    unsigned long long size;
    long long now_ns, grace_ns;
    Py_buffer parts[MOST_PARTS];
    uint64_t begins[MOST_PARTS];
    int count = 0;
    if (!PyArg_ParseTuple(args, "O!O!KLL", &PyTuple_Type, &arrays, &PyTuple_Type, &offsets, &size, &now_ns, &grace_ns))
        return NULL;
    Py_ssize_t number = PyTuple_Size(arrays);
    if (number > MOST_PARTS || PyTuple_Size(offsets) != number || size > ring->capacity) {
        PyErr_SetString(PyExc_ValueError, "these arrays do not fit a slot");
        return NULL;
    }
    for (; count < number; count++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, count), &parts[count], PyBUF_ANY_CONTIGUOUS)) goto done;
        begins[count] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(offsets, count));
        if (PyErr_Occurred() || begins[count] > size || (uint64_t)parts[count].len > size - begins[count]) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an array ends behind its slot");
            count++;
            goto done;
        }
    }
    int64_t slot = take_slot(ring, now_ns, grace_ns);
    if (slot < 0) {
        found = Py_NewRef(Py_None);
        goto done;
    }
    uint64_t generation = fill(ring, (uint64_t)slot, parts, begins, count, size);
    int problem = errno;
    release(ring, (uint64_t)slot, generation ? now_ns : 0);
    if (generation) {
        found = Py_BuildValue("LK", (long long)slot, (unsigned long long)generation);
    } else {
        errno = problem;
        PyErr_SetFromErrno(PyExc_OSError);
    }
done:
    while (count--) PyBuffer_Release(&parts[count]);
    return found;
}

/* Send one packet to each of these sockets without waiting; how many are broken, -1 with an exception. */
static long send_to(PyObject *fds, struct iovec *parts, size_t count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    long broken = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(fds); i++) {
        long fd = PyLong_AsLong(PyList_GetItem(fds, i));
        if (fd == -1 && PyErr_Occurred()) return -1;
        if (sendmsg((int)fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) broken++;
    }
    return broken;
}

/* send(array, now_ns, grace_ns, head, key, document, fds) -> broken | None

   Copy one array into a slot and tell each of `fds`, a list, where it lies. None where that cannot be done so, and
   then nothing was sent: the array is not in one piece, no slot is free, or the packet would be too large. */
static PyObject *ring_send(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Ring *ring = (Ring *)self;
    Py_buffer array;
    char *head, *key, *document;
    Py_ssize_t head_size, key_size, document_size;
    if (nargs != 7 || !PyList_Check(args[6])) {
        PyErr_SetString(PyExc_TypeError, "send takes array, now_ns, grace_ns, head, key, document and a list");
        return NULL;
    }
    int64_t now_ns = PyLong_AsLongLong(args[1]), grace_ns = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[3], &head, &head_size) ||
        PyBytes_AsStringAndSize(args[4], &key, &key_size) ||
        PyBytes_AsStringAndSize(args[5], &document, &document_size))
        return NULL;
    if (key_size > KEY_BYTES || head_size + document_size + 1 + (Py_ssize_t)sizeof(Place) > LARGEST_PACKET)
        Py_RETURN_NONE;
    if (PyObject_GetBuffer(args[0], &array, PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    uint64_t size = (uint64_t)array.len, zero = 0, generation = 0;
    int64_t slot = size <= ring->capacity ? take_slot(ring, now_ns, grace_ns) : -1;
    if (slot >= 0) {
        generation = fill(ring, (uint64_t)slot, &array, &zero, 1, size);
        release(ring, (uint64_t)slot, generation ? now_ns : 0);
    }
    PyBuffer_Release(&array);
    if (!generation) Py_RETURN_NONE;
    Place place = {.slot = (uint16_t)slot, .generation = generation, .arrays = 1, .size = size};
    memcpy(place.segment, key, (size_t)key_size);
    char mark = SLOT;
    struct iovec parts[] = {{head, (size_t)head_size}, {&mark, 1}, {&place, sizeof place},
                            {document, (size_t)document_size}};
    long broken = send_to(args[6], parts, 4);
    return broken < 0 ? NULL : PyLong_FromLong(broken);
}

/* send(head, document, fds) -> broken: one packet of two parts to each socket of a list. */
static PyObject *send_plain(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    char *head, *document;
    Py_ssize_t head_size, document_size;
    (void)module;
    if (nargs != 3 || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "send takes head, document and a list");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(args[0], &head, &head_size) ||
        PyBytes_AsStringAndSize(args[1], &document, &document_size))
        return NULL;
    struct iovec parts[] = {{head, (size_t)head_size}, {document, (size_t)document_size}};
    long broken = send_to(args[2], parts, 2);
    return broken < 0 ? NULL : PyLong_FromLong(broken);
}

/* offer(fd, packet) -> whether it was sent: False where there is no room, or nobody. Its first bytes become its length;
   the pipe takes up to PIPE_BUF bytes whole or not at all. */
static PyObject *offer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2 || !PyByteArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "offer takes a descriptor and a bytearray");
        return NULL;
    }
    long fd = PyLong_AsLong(args[0]);
    if (fd == -1 && PyErr_Occurred()) return NULL;
    char *packet = PyByteArray_AsString(args[1]);
    size_t size = (size_t)PyByteArray_Size(args[1]), length = size - LENGTH_BYTES;
    if (size < LENGTH_BYTES || size > PIPE_BUF) return PyBool_FromLong(0);
    packet[0] = (char)length, packet[1] = (char)(length >> 8);
    return PyBool_FromLong(write((int)fd, packet, size) >= 0);
}

/* What a packet says, as `receive` returns it. */
static PyObject *understand(char *packet, ssize_t size, PyObject *channels, PyObject *maps) {
    char *end = packet + size, *zero = size ? memchr(packet, 0, (size_t)size) : NULL;
    if (!zero || zero + 1 >= end) return PyBytes_FromStringAndSize(packet, size);
    PyObject *topic = PyBytes_FromStringAndSize(packet, zero - packet);
    PyObject *channel = topic ? PyDict_GetItemWithError(channels, topic) : NULL; /* borrowed */
    Py_XDECREF(topic);
    char *at = zero + 2;
    PyObject *view = NULL;
    if (channel && zero[1] == PLAIN) {
        view = PyTuple_New(0);
    } else if (channel && zero[1] == SLOT && (size_t)(end - at) >= sizeof(Place)) {
        Place place;
        memcpy(&place, at, sizeof place);
        PyObject *key = place.arrays == 1 ? PyBytes_FromStringAndSize(place.segment, KEY_BYTES) : NULL;
        Map *map = key ? (Map *)PyDict_GetItemWithError(maps, key) : NULL; /* borrowed */
        Py_XDECREF(key);
        if (map) {
            at += sizeof place;
            view = view_of(map, place.slot, place.generation, place.size);
            if (!view) PyErr_Clear(); /* no such place: whoever gets the packet says so */
        }
    }
    if (PyErr_Occurred()) return NULL;
    if (!view) return PyBytes_FromStringAndSize(packet, size);
    PyObject *document = PyBytes_FromStringAndSize(at, end - at);
    PyObject *found = document ? PyTuple_Pack(3, channel, document, view) : NULL;
    Py_XDECREF(document);
    Py_DECREF(view);
    return found;
}

/* receive(fd, channels, maps) -> None | bytes | (channel, document, view)

   None: nothing has come. A tuple is the usual case: a document alone (view: ()), or with one array in a segment that
   is in `maps` (None where it has been overwritten). Bytes are any other packet, as it came; b"": the end. */
static PyObject *receive(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    char packet[RECEIVE_BYTES];
    (void)module;
    if (nargs != 3 || !PyDict_Check(args[1]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "receive takes a descriptor and two dicts");
        return NULL;
    }
    long fd = PyLong_AsLong(args[0]);
    if (fd == -1 && PyErr_Occurred()) return NULL;
    ssize_t size = recv((int)fd, packet, sizeof packet, MSG_DONTWAIT);
    if (size >= 0) return understand(packet, size, args[1], args[2]);
    if (errno == EAGAIN || errno == EINTR) Py_RETURN_NONE;
    return PyErr_SetFromErrno(PyExc_OSError);
}

/* ---- Pipe: events that come straight */

typedef struct {
    PyObject_HEAD
    int fd;
    size_t kept; /* bytes of a packet whose rest is still in the pipe */
    char bytes[PIPE_BYTES];
} Pipe;

static PyObject *pipe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    int fd;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "i", &fd)) return NULL;
    Pipe *pipe = (Pipe *)PyType_GenericAlloc(type, 0);
    if (pipe) pipe->fd = fd;
    return (PyObject *)pipe;
}

/* What opens the documents of one topic: found once for those that follow upon each other. */
typedef struct {
    char head[KEPT_BYTES]; /* topic and mark */
    size_t size;           /* 0: none yet */
    PyObject *open, *is_new;
} Known;

/* The message of a packet, a new reference; None where it is no usual document, NULL with an exception. */
static PyObject *open_packet(Known *known, const char *packet, size_t size, PyObject *channels) {
    size_t head_size = known->size;
    if (!head_size || size < head_size || memcmp(packet, known->head, head_size)) {
        const char *zero = memchr(packet, 0, size);
        if (!zero || zero + 1 >= packet + size || zero[1] != PLAIN) Py_RETURN_NONE;
        PyObject *topic = PyBytes_FromStringAndSize(packet, zero - packet);
        PyObject *channel = topic ? PyDict_GetItemWithError(channels, topic) : NULL; /* borrowed */
        Py_XDECREF(topic);
        if (!channel && !PyErr_Occurred()) Py_RETURN_NONE;
        Py_CLEAR(known->open);
        Py_CLEAR(known->is_new);
        known->open = channel ? PyObject_GetAttr(channel, open_name) : NULL;
        known->is_new = known->open ? PyObject_GetAttr(channel, is_new_name) : NULL;
        if (!known->is_new) return NULL;
        head_size = (size_t)(zero - packet) + 2;
        known->size = head_size <= sizeof known->head ? head_size : 0; /* a name that long is looked up each time */
        memcpy(known->head, packet, known->size);
    }
    PyObject *document = PyBytes_FromStringAndSize(packet + head_size, (Py_ssize_t)(size - head_size));
    PyObject *both[] = {document, known->is_new};
    PyObject *stamped = document ? PyObject_Vectorcall(known->open, both, 2, NULL) : NULL;
    Py_XDECREF(document);
    return stamped;
}

/* take(channels, opened) -> how many of the packets were not opened, None where nothing waits, -1 at the end

   Read once, and put the message of each packet into the list `opened`; from the first on that is no usual document the
   packets as they came, since messages are opened in their order. No whole packet stays behind here, so the pipe is readable as long as there is more. */
static PyObject *pipe_take(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Pipe *pipe = (Pipe *)self;
    Known known = {.size = 0, .open = NULL, .is_new = NULL};
    long rare = 0;
    int is_broken = 0;
    if (nargs != 2 || !PyDict_Check(args[0]) || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "take takes a dict and a list");
        return NULL;
    }
    ssize_t size = read(pipe->fd, pipe->bytes + pipe->kept, sizeof pipe->bytes - pipe->kept);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) Py_RETURN_NONE;
    if (size <= 0) return PyLong_FromLong(-1);
    char *at = pipe->bytes, *end = pipe->bytes + pipe->kept + size;
    while (!is_broken && end - at >= LENGTH_BYTES) {
        size_t length = (size_t)(unsigned char)at[0] | (size_t)(unsigned char)at[1] << 8;
        if ((size_t)(end - at) < LENGTH_BYTES + length) break;
        char *packet = at + LENGTH_BYTES;
        PyObject *one = rare ? Py_NewRef(Py_None) : open_packet(&known, packet, length, args[0]);
        if (one == Py_None) {
            rare++;
            Py_DECREF(one);
            one = PyBytes_FromStringAndSize(packet, (Py_ssize_t)length);
        }
        is_broken = !one || PyList_Append(args[1], one);
        Py_XDECREF(one);
        at = packet + length;
    }
    pipe->kept = (size_t)(end - at);
    memmove(pipe->bytes, at, pipe->kept);
    Py_XDECREF(known.open), Py_XDECREF(known.is_new);
    if (is_broken) return NULL;
    return PyLong_FromLong(pipe->kept < PIPE_BUF ? rare : -1); /* none of ours is that long */
}

static void pipe_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

/* ---- Opener: from the document of a message to the message with its envelope */

/* A text or a map of the envelope before: most messages repeat them. */
typedef struct {
    PyObject *value;
    size_t size;
    unsigned char bytes[KEPT_BYTES];
} Kept;

enum { SOURCE, ORIGINS, EPOCHS, CAUSE, PROVENANCE, SEAT, KEPT };

typedef struct {
    PyObject_HEAD
    PyObject *start, *topic, *last, *envelope, *stamped, *read; /* see opener_new */
    PyObject *before;                                            /* the last envelope that was opened here */
    uint64_t seq;                                                /* its number */
    Kept kept[KEPT];
} Opener;

/* opener(start, topic, last, Envelope, Stamped, read): `start` is what stands before the source, `last` the newest
   envelope of each source, `read` decodes a payload. */
static PyObject *opener_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *start, *topic, *last, *envelope, *stamped, *read;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "SUO!OOO", &start, &topic, &PyDict_Type, &last, &envelope, &stamped, &read)) return NULL;
    Opener *opener = (Opener *)PyType_GenericAlloc(type, 0);
    if (!opener) return NULL;
    opener->start = Py_NewRef(start), opener->topic = Py_NewRef(topic), opener->last = Py_NewRef(last);
    opener->envelope = Py_NewRef(envelope), opener->stamped = Py_NewRef(stamped), opener->read = Py_NewRef(read);
    return (PyObject *)opener;
}

static int opener_traverse(PyObject *self, visitproc visit, void *arg) {
    Opener *opener = (Opener *)self;
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(opener->last);
    Py_VISIT(opener->read);
    Py_VISIT(opener->before);
    return 0;
}

static int opener_clear(PyObject *self) {
    Opener *opener = (Opener *)self;
    Py_CLEAR(opener->start);
    Py_CLEAR(opener->topic);
    Py_CLEAR(opener->last);
    Py_CLEAR(opener->before);
    Py_CLEAR(opener->envelope);
    Py_CLEAR(opener->stamped);
    Py_CLEAR(opener->read);
    for (int i = 0; i < KEPT; i++) {
        Py_CLEAR(opener->kept[i].value);
        opener->kept[i].size = 0;
    }
    return 0;
}

static void opener_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    opener_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)type);
}

/* What is left to read. Each reader below returns 0 (NULL) for what it does not know; then it is no usual message. */
typedef struct {
    const unsigned char *at, *end;
} Bytes;

static int read_big(Bytes *from, int size, uint64_t *number) {
    if (from->end - from->at < size) return 0;
    *number = 0;
    while (size--) *number = *number << 8 | *from->at++;
    return 1;
}

/* A whole number between -2**62 and 2**62. */
static int read_int(Bytes *from, int64_t *number) {
    uint64_t bits;
    if (from->at == from->end) return 0;
    unsigned char mark = *from->at++;
    if (mark < 0x80 || mark >= 0xe0) {
        *number = (signed char)mark;
        return 1;
    }
    if (mark < 0xcc || mark > 0xd3) return 0;
    int size = 1 << (mark & 3);
    if (!read_big(from, size, &bits)) return 0;
    if (mark >= 0xd0 && size < 8 && bits >> (8 * size - 1)) bits |= ~(uint64_t)0 << 8 * size;
    *number = (int64_t)bits;
    if (mark < 0xd0 && bits >> 63) return 0;
    return *number <= MOST && *number >= -MOST;
}

static PyObject *read_text(Bytes *from) {
    if (from->at == from->end) return NULL;
    unsigned char mark = *from->at++;
    uint64_t size = mark & 31;
    if (mark == 0xd9 ? !read_big(from, 1, &size) : mark >> 5 != 5) return NULL;
    if ((uint64_t)(from->end - from->at) < size) return NULL;
    from->at += size;
    return PyUnicode_DecodeUTF8((const char *)from->at - size, (Py_ssize_t)size, NULL);
}

/* Texts and their numbers, none below `least`. */
static PyObject *read_map(Bytes *from, int64_t least) {
    if (from->at == from->end || *from->at >> 4 != 8) return NULL;
    int count = *from->at++ & 15;
    PyObject *map = PyDict_New();
    while (map && count--) {
        int64_t number = 0;
        PyObject *name = read_text(from);
        PyObject *value = name && read_int(from, &number) && number >= least ? PyLong_FromLongLong(number) : NULL;
        if (!value || PyDict_SetItem(map, name, value)) Py_CLEAR(map);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return map;
}

/* A text or a map, borrowed: that of the message before where it is the same again. */
static PyObject *read_kept(Opener *opener, int which, Bytes *from) {
    Kept *kept = &opener->kept[which];
    const unsigned char *begin = from->at;
    if (kept->size && (size_t)(from->end - begin) >= kept->size && !memcmp(begin, kept->bytes, kept->size)) {
        from->at += kept->size;
        return kept->value;
    }
    PyObject *value = which == ORIGINS ? read_map(from, -MOST) : which == EPOCHS ? read_map(from, 0) : read_text(from);
    if (!value) return NULL;
    Py_XDECREF(kept->value);
    kept->value = value;
    kept->size = (size_t)(from->at - begin) <= KEPT_BYTES ? (size_t)(from->at - begin) : 0;
    memcpy(kept->bytes, begin, kept->size);
    return value;
}

/* open(document, is_new) -> Stamped | None

   None for all that is not usual, as well as for what has come before: then nothing has been noted. `is_new(envelope)`
   decides where the number does not follow upon the last one. */
static PyObject *opener_open(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Opener *opener = (Opener *)self;
    char *document, *start;
    Py_ssize_t size, start_size;
    int64_t seq, published_ns;
    PyObject *held[KEPT] = {0}, *number = NULL, *time = NULL, *envelope = NULL, *body = NULL, *payload = NULL;
    PyObject *found = NULL;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "open takes a document and is_new");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(args[0], &document, &size) ||
        PyBytes_AsStringAndSize(opener->start, &start, &start_size))
        return NULL;
    if (size < start_size || memcmp(document, start, (size_t)start_size)) Py_RETURN_NONE;
    Bytes from = {(unsigned char *)document + start_size, (unsigned char *)document + size};
    for (int i = 0; i < KEPT; i++) {
        if (!(held[i] = Py_XNewRef(read_kept(opener, i, &from)))) goto done;
        if (i == SOURCE && (!read_int(&from, &seq) || !read_int(&from, &published_ns) || seq < 0 || published_ns < 0))
            goto done;
    }
    body = PyBytes_FromStringAndSize((const char *)from.at, from.end - from.at);
    payload = body ? PyObject_Vectorcall(opener->read, &body, 1, NULL) : NULL;
    if (!payload || !(number = PyLong_FromLongLong(seq)) || !(time = PyLong_FromLongLong(published_ns))) goto done;
    PyObject *fields[] = {opener->topic, held[SOURCE], number,           time,      held[ORIGINS],
                          held[EPOCHS],  held[CAUSE],  held[PROVENANCE], held[SEAT]};
    if (!(envelope = PyObject_Vectorcall(opener->envelope, fields, 9, NULL))) goto done;
    PyObject *last = PyDict_GetItemWithError(opener->last, held[SOURCE]); /* borrowed */
    if (last && last == opener->before && (uint64_t)seq == opener->seq + 1) { /* nearly always */
        if (PyDict_SetItem(opener->last, held[SOURCE], envelope)) goto done;
    } else {
        PyObject *is_new = PyErr_Occurred() ? NULL : PyObject_Vectorcall(args[1], &envelope, 1, NULL);
        int is_known = !is_new || !PyObject_IsTrue(is_new);
        Py_XDECREF(is_new);
        if (is_known) goto done;
    }
    Py_XDECREF(opener->before);
    opener->before = Py_NewRef(envelope);
    opener->seq = (uint64_t)seq;
    PyObject *both[] = {payload, envelope};
    found = PyObject_Vectorcall(opener->stamped, both, 2, NULL);
done:
    for (int i = 0; i < KEPT; i++) Py_XDECREF(held[i]);
    Py_XDECREF(number), Py_XDECREF(time), Py_XDECREF(envelope), Py_XDECREF(body), Py_XDECREF(payload);
    if (found) return found;
    PyErr_Clear(); /* the common way says what is wrong */
    Py_RETURN_NONE;
}

/* ---- the module */

static PyMethodDef map_methods[] = {
    {"view", map_view, METH_VARARGS, "view(slot, generation, size) -> View, or None where it was written anew"}, {0}};
static PyType_Slot map_slots[] = {
    {Py_tp_new, map_new}, {Py_tp_dealloc, map_dealloc}, {Py_tp_methods, map_methods}, {0}};
static PyType_Spec map_spec = {"runtime.transport._lane.Map", sizeof(Map), 0, Py_TPFLAGS_DEFAULT, map_slots};

static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, view_dealloc}, {Py_bf_getbuffer, view_buffer}, {Py_sq_length, view_length}, {0}};
static PyType_Spec view_spec = {"runtime.transport._lane.View", sizeof(View), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, view_slots};

static PyMethodDef ring_methods[] = {
    {"store", ring_store, METH_VARARGS, "store(arrays, offsets, size, now_ns, grace_ns) -> (slot, generation) | None"},
    {"send", (PyCFunction)(void (*)(void))ring_send, METH_FASTCALL,
     "send(array, now_ns, grace_ns, head, key, document, fds) -> number of broken sockets | None"},
    {0}};
static PyType_Slot ring_slots[] = {
    {Py_tp_new, ring_new}, {Py_tp_dealloc, ring_dealloc}, {Py_tp_methods, ring_methods}, {0}};
static PyType_Spec ring_spec = {"runtime.transport._lane.Ring", sizeof(Ring), 0, Py_TPFLAGS_DEFAULT, ring_slots};

static PyMethodDef pipe_methods[] = {
    {"take", (PyCFunction)(void (*)(void))pipe_take, METH_FASTCALL, "take(channels, opened) -> packets not opened | None"},
    {0}};
static PyType_Slot pipe_slots[] = {
    {Py_tp_new, pipe_new}, {Py_tp_dealloc, pipe_dealloc}, {Py_tp_methods, pipe_methods}, {0}};
static PyType_Spec pipe_spec = {"runtime.transport._lane.Pipe", sizeof(Pipe), 0, Py_TPFLAGS_DEFAULT, pipe_slots};

static PyMethodDef opener_methods[] = {
    {"open", (PyCFunction)(void (*)(void))opener_open, METH_FASTCALL, "open(document, is_new) -> Stamped | None"}, {0}};
static PyType_Slot opener_slots[] = {{Py_tp_new, opener_new},           {Py_tp_dealloc, opener_dealloc},
                                     {Py_tp_traverse, opener_traverse}, {Py_tp_clear, opener_clear},
                                     {Py_tp_methods, opener_methods},   {0}};
static PyType_Spec opener_spec = {"runtime.transport._lane.Opener", sizeof(Opener), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, opener_slots};

static PyMethodDef functions[] = {
    {"receive", (PyCFunction)(void (*)(void))receive, METH_FASTCALL, "receive(fd, channels, maps)"},
    {"send", (PyCFunction)(void (*)(void))send_plain, METH_FASTCALL, "send(head, document, fds) -> broken sockets"},
    {"offer", (PyCFunction)(void (*)(void))offer, METH_FASTCALL, "offer(fd, packet) -> whether it was sent"},
    {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_lane", "The lane's usual case, in C.", -1, functions,
                                        0, 0, 0, 0};

PyMODINIT_FUNC PyInit__lane(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *map = PyType_FromSpec(&map_spec), *ring = PyType_FromSpec(&ring_spec);
    PyObject *opener = PyType_FromSpec(&opener_spec), *pipe = PyType_FromSpec(&pipe_spec);
    view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
    open_name = PyUnicode_InternFromString("open"), is_new_name = PyUnicode_InternFromString("is_new");
    if (!module || !map || !ring || !view_type || !open_name || !is_new_name || PyModule_AddObjectRef(module, "Map", map) ||
        PyModule_AddObjectRef(module, "Ring", ring) || PyModule_AddObjectRef(module, "Opener", opener) ||
        PyModule_AddObjectRef(module, "Pipe", pipe)) {
        Py_XDECREF(module);
        module = NULL;
    }
    Py_XDECREF(map);
    Py_XDECREF(ring);
    Py_XDECREF(opener);
    Py_XDECREF(pipe);
    return module;
}
