// From a body to a frame, and back.

#include "spool/note.h"
#include "spool/parts.h"

namespace holdfast {

Moment Spool::Parts::moment() const {
  return {clock.wall(), clock.monotonic()};
}

FrameHeader Spool::Parts::header_for(const Moment& accepted, Sequence sequence, const RecordId& id, RouteNumber route,
                                     Priority priority) const {
  FrameHeader header;
  header.sequence = sequence;
  header.id = id;
  header.route = static_cast<std::uint32_t>(route);
  header.priority = priority;
  header.accepted_wall_ns = accepted.wall.since_1970.count();
  header.clock_trusted = accepted.wall.trusted;
  header.accepted_mono_ns = static_cast<std::uint64_t>(accepted.monotonic.count());
  header.boot = boot;
  header.data_key_id = keyring->current_number();
  return header;
}

void Spool::Parts::seal(FrameHeader& header, ByteView plain, Bytes& out) {
  const std::size_t before = out.size(), size = sealed_frame_size(plain.size());
  out.resize(before + size);
  seal_at(std::span(out).subspan(before), header, plain);
}

void Spool::Parts::seal_at(std::span<std::uint8_t> frame, FrameHeader& header, ByteView plain) {
  seal_frame_at(frame, header, plain, keyring->current(), keyring->namer());
  sealed_bytes += frame.size();
}

void Spool::Parts::append_done(std::vector<FiledSettlement>& settlements, Bytes& out) {
  FrameHeader header = header_for(moment(), 0, RecordId{}, RouteNumber{}, 0);
  header.kind = FrameKind::done;
  header.data_key_id = 0;
  Bytes body;
  write_done_list(settlements, body);
  write_done_frame(header, body, keyring->namer(), out);
}

void Spool::Parts::append_note(const FrameHeader& record, Reason reason, TargetNumber target, std::string_view words,
                               Bytes& out) {
  FrameHeader header =
      header_for(moment(), record.sequence, record.id, static_cast<RouteNumber>(record.route), record.priority);
  header.kind = FrameKind::note;
  header.content = record.content;
  Bytes plain;
  encode_note({reason, target, std::string(words.substr(0, kMaxWords))}, plain);
  seal(header, plain, out);
}

std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring) {
  Bytes plain;
  return open_record(frame, keyring, plain);
}

std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring, Bytes& plain) {
  const auto header = read_header(frame, keyring.namer());
  if (!header || header->kind != FrameKind::put) return Reason::damaged;
  const SecretKey* key = keyring.data_key(header->data_key_id);
  if (key == nullptr) return read_body(*header, frame, keyring.namer()) ? Reason::unopenable : Reason::damaged;
  if (const auto reject = open_frame_into(plain, *header, frame, *key, keyring.namer()))
    return *reject == Reject::bad_seal ? Reason::unopenable : Reason::damaged;
  auto body = decode_body(plain);
  if (!body) return Reason::undecodable;
  return OpenedBody{*header, std::move(*body)};
}

// Nothing is told by a frame that cannot be opened.
void Spool::Parts::place_in_stream(LedgerEntry& entry, ByteView frame) const {
  const auto opened = open_record(frame, *keyring);
  if (const OpenedBody* whole = std::get_if<OpenedBody>(&opened)) place_in_stream(entry, whole->body);
}

// Its place is the identity only of a key that says nothing else: a conflict's key begins with it.
void Spool::Parts::place_in_stream(LedgerEntry& entry, const RecordBody& body) const {
  const Origin& origin = body.envelope.origin;
  const auto of_place = identify({Strategy::stream_sequence, {}}, site, body.envelope);
  const Identity* identity = std::get_if<Identity>(&of_place);
  entry.positional = identity != nullptr && identity->key == body.key;
  entry.position = StreamPosition{stream_tag(origin.stream, entry.positional), origin.sequence, origin.timestamp_ns};
}

// A place that is no identity is kept apart from those that are: it answers for the stream, not for a message.
std::uint64_t Spool::Parts::stream_tag(const std::string& stream, bool positional) const {
  return keyring->namer().stream_tag(site + (positional ? ":" : " ") + stream);
}

}  // namespace holdfast
