// One contiguous byte stream over the subfiles of a layout.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/turn.h"
#include "layout/layout.h"
#include "layout/master_file.h"
#include "observe/subfile_tally.h"
#include "store/subfile/subfile.h"
#include "store/target/paths.h"

namespace shima {

struct LogicalOpen {
  std::string path;
  bool read = false;
  bool write = false;
  bool create = false;  // a plain file, if the path does not exist
  bool exclusive = false;
  bool direct_read = false;
  bool direct_write = false;
  unsigned permissions = 0666;  // before the umask
  std::optional<bool> close_to_open = {};
};

// Consecutive bytes of the logical file and the memory that holds them; one of many.
struct LogicalRun {
  FileOffset begin;
  std::span<const iovec> pieces;
  std::uint64_t len_bytes = 0;
};

class LogicalFile {
 public:
  // Opens the file at the path: a plain file, or the subfiles that a master file names.
  [[nodiscard]] static Result<LogicalFile> open(const LogicalOpen& request);
  // Opens the subfiles of `master` for the file at the path, whose content is `standing`.
  [[nodiscard]] static Result<LogicalFile> open_parts(const MasterFile& master,
                                                      const LogicalOpen& request,
                                                      const MasterFile& standing);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  // The description of a striped file; null for a plain one.
  [[nodiscard]] const MasterFile* master() const { return master_ ? &*master_ : nullptr; }

  // A plain file that is open already; `path` is for messages.
  [[nodiscard]] static LogicalFile around(const std::string& path, std::unique_ptr<Subfile> whole);

  // Whether a byte of one may be a byte of the other: one file that was opened twice, also through
  // a copy of its master file.
  [[nodiscard]] Result<bool> shares_subfiles_with(const LogicalFile& other) const;

  // Whether all subfiles belong to this user.
  [[nodiscard]] Result<bool> belongs_to(uid_t user) const;

  // Starts counting moved bytes for each subfile.
  void start_tallies() { tallies_.start(subfiles_.size()); }
  [[nodiscard]] std::vector<SubfileTally> tallies() const { return tallies_.all(); }
  // Counts what an I/O node has moved in a collective call.
  void tally_of_node(int subfile, std::uint64_t runs, std::uint64_t len_bytes, bool writing) {
    const auto index = static_cast<std::size_t>(subfile);
    writing ? tallies_.wrote(index, len_bytes, runs) : tallies_.read(index, len_bytes, runs);
  }

  // --- by logical offset
  [[nodiscard]] Status write(FileOffset offset, std::span<const iovec> pieces);
  // Writes at the end of the file. Appends of all processes exclude each other, but not on a file
  // system of this machine that has no locks; those of this process that have the same `turn` do
  // there, too. timed_out after lock_timeout(); the error names the process that others wait for.
  [[nodiscard]] Status append(const void* data, std::uint64_t len_bytes, Turn& turn);
  // Stops at the end of the file; returns the bytes read.
  [[nodiscard]] Result<std::uint64_t> read(FileOffset offset, std::span<const iovec> pieces);
  [[nodiscard]] Status write(FileOffset offset, const void* data, std::uint64_t len_bytes) {
    const iovec piece{const_cast<void*>(data), len_bytes};
    return write(offset, std::span<const iovec>(&piece, 1));
  }
  [[nodiscard]] Result<std::uint64_t> read(FileOffset offset, void* data, std::uint64_t len_bytes) {
    const iovec piece{data, len_bytes};
    return read(offset, std::span<const iovec>(&piece, 1));
  }

  // See Subfile::move_apart. Far subfiles are asked together, others one after the other.
  [[nodiscard]] bool move_apart(std::span<const LogicalRun> runs, bool writing);
  // See Subfile::write_mapped.
  void allow_mapping(bool allowed) { may_map_ = allowed; }
  [[nodiscard]] bool maps_writes();
  [[nodiscard]] bool write_mapped(std::span<const LogicalRun> runs);

  // --- by place in a subfile
  [[nodiscard]] Status write_in(int subfile, TargetOffset offset, std::span<const iovec> pieces);
  [[nodiscard]] Status write_in(int subfile, TargetOffset offset, const void* data,
                                std::uint64_t len_bytes);
  [[nodiscard]] bool write_mapped_in(int subfile, std::span<const ApartRun> runs);
  // Stops after the last byte of the subfile that belongs to the logical file; bytes below that
  // were never written read as zeros.
  [[nodiscard]] Result<std::uint64_t> read_in(int subfile, TargetOffset offset,
                                              std::span<const iovec> pieces);
  [[nodiscard]] Result<std::uint64_t> read_in(int subfile, TargetOffset offset, void* data,
                                              std::uint64_t len_bytes);
  // See Subfile::view; what is wanted of it counts as read.
  struct Wanted {
    std::uint64_t runs = 0;
    std::uint64_t len_bytes = 0;
  };
  [[nodiscard]] std::unique_ptr<FileView> view_in(int subfile, TargetRange range,
                                                  const Wanted& wanted);
  // The end of the logical file, after a read found nothing at `at` in a subfile.
  [[nodiscard]] Result<FileOffset> end_seen_at(int subfile, TargetOffset at);

  // --- the whole file
  [[nodiscard]] bool cached(FileOffset offset);
  [[nodiscard]] bool writes_to_cache() const;
  // Whether any subfile is on another machine (see Subfile::is_far).
  [[nodiscard]] bool is_far() const;
  // See Subfile::node_identity; 0 unless I/O nodes own all subfiles.
  [[nodiscard]] std::uint64_t node_identity() const;
  // See Subfile::join.
  [[nodiscard]] Result<std::unique_ptr<DirectedPart>> join(int subfile, const DirectedCall& call) {
    return this->subfile(subfile).join(call);
  }
  // See Subfile::will_need.
  void will_need(FileRange range);
  [[nodiscard]] Result<FileOffset> size();
  [[nodiscard]] Result<std::vector<std::uint64_t>> subfile_sizes();
  // The first offset at or after `from` that may have been written; nothing if there is none.
  [[nodiscard]] Result<std::optional<FileOffset>> next_data(FileOffset from);
  [[nodiscard]] Status truncate(FileOffset size);
  // For a striped file without a name, so that no process can find a half-finished truncation.
  [[nodiscard]] Status truncate_unnamed(FileOffset size);
  [[nodiscard]] Status preallocate(FileOffset size);
  [[nodiscard]] Status sync();
  // The same, but only for subfiles that this object has changed since its last sync.
  [[nodiscard]] Status sync_own();
  // Another process has written for this one.
  void note_changed();
  // See Subfile.
  [[nodiscard]] Status publish();
  void look_again();
  [[nodiscard]] bool close_to_open() const;
  // The same on all nodes if one kernel's cache has every byte of the file; 0 if none has.
  [[nodiscard]] std::uint64_t local_identity() const;
  [[nodiscard]] bool locks_stay_on_node() const { return subfiles_.front()->locks_stay_on_node(); }
  // Blocks until no other open file holds a conflicting lock on the range.
  [[nodiscard]] Status lock(FileRange range, bool exclusive);
  // The same, but false instead of waiting.
  [[nodiscard]] Result<bool> try_lock(FileRange range, bool exclusive);
  void unlock(FileRange range);
  // Releases the file and reports errors that the system reported late. Call once.
  [[nodiscard]] Status close();

 private:
  LogicalFile(const std::string& path, Layout layout, std::optional<MasterFile> master,
              std::vector<std::unique_ptr<Subfile>> subfiles)
      : path_(name_from_anywhere(path)),
        layout_(std::move(layout)),
        master_(std::move(master)),
        subfiles_(std::move(subfiles)) {}

  [[nodiscard]] static Result<LogicalFile> open_plain(const LogicalOpen& request);
  [[nodiscard]] Subfile& subfile(int index) { return *subfiles_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] Result<std::uint64_t> read_pieces_in(int subfile, TargetOffset offset,
                                                     std::span<const iovec> pieces);
  [[nodiscard]] Status write_pieces_in(int subfile, TargetOffset offset,
                                       std::span<const iovec> pieces, std::uint64_t len_bytes);
  [[nodiscard]] bool move_together(FileOffset offset, std::span<const iovec> pieces, bool writing);
  void tally(std::size_t subfile, std::span<const ApartRun> runs, bool writing);
  [[nodiscard]] Status append_timed_out();

  std::string path_;
  Layout layout_;
  std::optional<MasterFile> master_;
  bool master_synced_ = false;
  bool may_map_ = true;
  std::vector<std::unique_ptr<Subfile>> subfiles_;
  SubfileTallies tallies_;
};

}  // namespace shima
