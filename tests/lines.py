"""Commands and messages as plain lines, so that a test compares all that a machine asks for, and a difference is read.

Law: every command is one line. A line says what matters of it: who, which batch, how many rows; not how many bytes of
credit, nor where somebody listens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rove.control.commands import Keep
from rove.data.events import (
    AskReaders,
    Cut,
    Dial,
    DiskDone,
    Evicted,
    Go,
    Listed,
    ListFolders,
    Load,
    Loaded,
    LogRead,
    Met,
    Note,
    OnDisk,
    Open,
    Opened,
    OpenFailed,
    Pack,
    Packed,
    Produced,
    Readers,
    ReadLog,
    Remember,
    Wait,
)
from rove.data.link.link import ANEW
from rove.model.batch import Header
from rove.model.events import Allow, Arrived, Conn, Drop, Garbled, Send, Tick
from rove.model.ids import Origin, Stage
from rove.model.messages import (
    Ack,
    Answer,
    Ask,
    Beat,
    Data,
    Fragment,
    Goodbye,
    Hello,
    Message,
    Orders,
    Refused,
    Report,
    Resend,
    Welcome,
)


def lines(commands: Sequence[Any]) -> list[str]:
    """All of them, in order."""
    return [line(command) for command in commands]


def line(command: Any) -> str:
    """What a machine asks for."""
    match command:
        case Send(conn=conn, message=said):
            return f"to {name(conn)}: {message(said)}"
        case Dial(peer=peer):
            return f"dial {peer.node}"
        case Drop(conn=conn):
            return f"hang up on {name(conn)}"
        case Allow(peers=peers):
            return f"allow {listed(peer.node for peer in peers)}"
        case Wait(origin=origin):
            return f"{origin} waits"
        case Go(origin=origin):
            return f"{origin} goes on"
        case Remember(fragments=fragments, peers=peers):
            return f"remember {listed(map(part, fragments))}; peers {listed(peer.node for peer in peers)}"
        case OnDisk(folder=folder, group=group):
            return f"disk {folder}: {counted(type(each).__name__.lower() for each in group.commands)}"
        case Open(folder=folder):
            return f"disk open {folder}"
        case ReadLog(folder=folder, position=position):
            return f"disk read {folder} from entry {position}"
        case Load(rows=rows):
            return f"disk load {rows.length} bytes of {rows.folder}"
        case ListFolders(prefix=prefix):
            return f"disk list {prefix}"
        case AskReaders(folder=folder):
            return f"disk who reads {folder}"
        case Pack(kind=kind):
            return f"pack rows of {kind}"
        case Evicted(query=query, origin=origin, seq=seq, through=through, rows=rows, late=late):
            return f"evicted {query} {origin} {span(seq, through)}, {rows} rows{', late' if late else ''}"
        case Cut(peer=peer):
            return f"cut from {peer}"
        case Met(peer=peer):
            return f"met {peer}"
        case Note(text=text):
            return f"note: {text}"
        case Keep(kind=kind, name=named, record=record):
            return f"{'forget' if record is None else 'keep'} {kind} {named}"
    return str(command)


def event(happened: Any) -> str:
    """What happens to a machine."""
    match happened:
        case Arrived(conn=conn, message=said):
            return f"from {name(conn)}: {message(said)}"
        case Garbled(conn=conn, why=why):
            return f"from {name(conn)}: {why} bytes"
        case Produced(origin=origin, data=data, ended=ended):
            made = "nothing" if data is None else f"{data.num_rows} rows"
            return f"{origin} makes {made}{', and ends' if ended else ''}"
        case DiskDone(folder=folder, trouble=trouble):
            return f"disk {folder} {f'fails: {trouble}' if trouble else 'has it'}"
        case Opened(folder=folder):
            return f"disk {folder} is open"
        case OpenFailed(folder=folder, trouble=trouble):
            return f"disk {folder} cannot be opened: {trouble}"
        case LogRead(folder=folder, entries=entries, over=over, trouble=trouble):
            read = f"fails: {trouble}" if trouble else f"read, {len(entries)} entries{', all of it' if over else ''}"
            return f"disk {folder} {read}"
        case Loaded(payload=payload, trouble=trouble):
            return f"disk rows {f'cannot be read: {trouble}' if payload is None else 'are here'}"
        case Listed(folders=folders):
            return f"disk holds {listed(folders)}"
        case Readers(folder=folder, positions=positions):
            return f"disk {folder} is read by {listed(positions)}"
        case Packed(payload=payload):
            return f"rows are {'as they were' if payload is None else 'packed'}"
        case Tick():
            return "time passes"
    return str(happened)


def message(said: Message) -> str:
    """What one machine says to another."""
    match said:
        case Hello(start=start, heard=heard, received=received):
            knows = f", has {received} frames of start {life(heard)}" if heard else ""
            return f"Hello, start {life(start)}{knows}"
        case Welcome(start=start, heard=heard, received=received):
            return f"Welcome, start {life(start)}, has {received} frames of start {life(heard)}"
        case Refused(why=why):
            return f"Refused, {why}"
        case Data(number=number, header=header):
            return f"Data {number}: {batch(header)}"
        case Ack(through=through, tell=tell):
            return f"Ack {through}{', tell' if tell else ''}"
        case Beat(sent=sent, acked=acked):
            return f"Beat, sent {sent}, acked {acked}"
        case Resend(after=after):
            return f"Resend after {after}"
        case Report(whole=whole, running=running, ended=ended, reaches=reaches, unknown=unknown, troubles=troubles):
            runs = listed(f"{query} v{version}" for query, version in running.items())
            words = [f"runs {runs}"] if whole or running else []
            words += [f"runs {listed(ended)} no longer"] if ended else []
            words += [f"reaches {listed(reaches)}"] if reaches is not None else []
            words += [f"asks for {listed(unknown)}"] if unknown else []
            words += [f"cannot run {listed(troubles)}"] if troubles else []
            words += [f"has moved state {origin}" for _, origin in said.moved or ()]
            words += [f"has let {each.origin} go at {each.begin.next}" for each in said.released or ()]
            return ", ".join(["Report" if whole else "News", *(words or ["nothing new"])])
        case Orders(deploy=deploy, stop=stop, leave=leave, peers=peers, trouble=trouble, whole=whole, learn=learn):
            words = [f"run {part(fragment)}" for fragment in deploy]
            words += [f"stop {query}" for query in stop] + [f"leave {query}" for query in leave]
            words += [] if peers is None else [f"peers {listed(peer.node for peer in peers)}"]
            words += [] if learn is None else [f"take {listed(f'{maker} of {near}' for near, maker in learn.pairs)}"]
            words += [trouble] if trouble else []
            words += ["send a whole report"] if whole else []
            return f"Orders, {'; '.join(words) or 'nothing'}"
        case Goodbye(node=node):
            return f"Goodbye of {node}"
        case Ask(verb=verb):
            return f"Ask, {verb}"
        case Answer(trouble=trouble):
            return f"Answer{f', {trouble}' if trouble else ''}"


def batch(header: Header) -> str:
    """A batch by its name, and what became of its rows."""
    if header.state:
        return f"{header.query} {header.origin} {header.seq}, a piece of state"
    words = [f"{header.query} {header.origin} {span(header.seq, header.through)}", f"{header.rows} rows"]
    words += [f"{header.evicted} evicted"] if header.evicted else []
    words += [f"{header.lost} lost"] if header.lost else []
    words += [word for word in ("late", "packed", "folded") if getattr(header, word)]
    return ", ".join(words)


def part(fragment: Fragment) -> str:
    """A fragment: its query and version, and where it sends."""
    others = f" or {listed(fragment.others)}" if fragment.others else ""
    goes = f"ends in {listed(sink.kind for sink in fragment.sinks.values())}" if fragment.sinks else ""
    goes = f"to {fragment.next}{others}" if fragment.next is not None else goes
    moves = [f"send state {origin}" for origin in fragment.sends.values()]
    moves += [f"await state {origin}" for origin in fragment.awaits.values()]
    moves += [f"lead state {origin} to {node}" for origin, node in fragment.leads.items()]
    moves += [f"let {origin} go" for origin in _origins(fragment.releases)]
    begins = {origin: f" from {begin.next}" for origin, begin in fragment.begins.items()}
    moves += [f"take {origin} batch by batch{begins.get(origin, '')}" for origin in _origins(fragment.lifts)]
    moves += [f"leave out {origin} {spans}" for _, origin, spans in fragment.elsewhere]
    return " and ".join([f"{fragment.query} v{fragment.version} {goes}".rstrip(), *moves])


def _origins(book: Mapping[Stage, tuple[Origin, ...]]) -> dict[Origin, None]:
    """The origins in a book by operators, each once."""
    return dict.fromkeys(origin for origins in book.values() for origin in origins)


def life(start: int) -> str:
    """A start of a process; a link that began anew within it has a dash for each time."""
    return f"{start % ANEW}{chr(39) * (start // ANEW)}"


def name(conn: Conn) -> str:
    return conn.decode() if isinstance(conn, bytes) else conn


def span(seq: int, through: int) -> str:
    return str(seq) if seq == through else f"{seq} to {through}"


def listed(words: Iterable[object]) -> str:
    return ", ".join(map(str, words)) or "nothing"


def counted(words: Iterable[str]) -> str:
    """Each word once, with how often it is there if that is more than once."""
    return ", ".join(f"{count} {word}" if count > 1 else word for word, count in Counter(words).items())
