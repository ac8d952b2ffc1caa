#include "spool/sealer.h"

#include <string>

#include "spool/note.h"

namespace holdfast {

FrameHeader Sealer::header(const Accepted& accepted, Sequence sequence, const RecordId& id, RouteNumber route,
                           Priority priority) const {
  FrameHeader header;
  header.sequence = sequence;
  header.id = id;
  header.route = static_cast<std::uint32_t>(route);
  header.priority = priority;
  header.accepted_wall_ns = accepted.wall.since_1970.count();
  header.clock_trusted = accepted.wall.trusted;
  header.accepted_mono_ns = static_cast<std::uint64_t>(accepted.monotonic.count());
  header.boot = boot_;
  header.data_key_id = keyring_.current_number();
  return header;
}

void Sealer::seal(FrameHeader& header, ByteView plain, Bytes& out) {
  const std::size_t before = out.size(), size = sealed_frame_size(plain.size());
  out.resize(before + size);
  seal_at(std::span(out).subspan(before), header, plain);
}

void Sealer::seal_at(std::span<std::uint8_t> frame, FrameHeader& header, ByteView plain) {
  seal_frame_at(frame, header, plain, keyring_.current(), keyring_.namer());
  worn_ += frame.size();
}

void Sealer::append_done(std::vector<TargetSettlement>& settlements, Bytes& out) const {
  FrameHeader done = header(now(), 0, RecordId{}, RouteNumber{}, 0);
  done.kind = FrameKind::done;
  done.data_key_id = 0;
  Bytes body;
  write_done_list(settlements, body);
  write_done_frame(done, body, keyring_.namer(), out);
}

void Sealer::append_note(const FrameHeader& record, Reason reason, TargetNumber target, std::string_view words,
                         Bytes& out) {
  FrameHeader note = header(now(), record.sequence, record.id, static_cast<RouteNumber>(record.route), record.priority);
  note.kind = FrameKind::note;
  note.content = record.content;
  Bytes plain;
  encode_note({reason, target, std::string(words.substr(0, kMaxWords))}, plain);
  seal(note, plain, out);
}

}  // namespace holdfast
