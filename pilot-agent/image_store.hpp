#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/channel.hpp"
#include "pilot-agent/folder_tar.hpp"

namespace glidepod::agent {

// Opens a job's image file for reading. It must be a plain file of the job's user, in the sandbox itself,
// which lies in scratch. The Error is for the user.
Result<Fd> open_image_file(const std::string& scratch, const std::string& sandbox, const std::string& name,
                           uid_t user);

// A folder there, by O_PATH.
Result<Fd> open_image_folder(const std::string& scratch, const std::string& sandbox, const std::string& name,
                             uid_t user);

// Whether an image is to be taken from a mounted CVMFS: no name of one that a rule covers, but a file there,
// or the folder that such a name leads to.
bool is_cvmfs_image(std::string_view image, bool ruled);
// Opens it by O_PATH below cvmfs, "/cvmfs" but in tests. A link may lead from one path there to another, and
// nowhere else. The Error is for the user.
Result<Fd> open_cvmfs_image(const std::string& cvmfs, std::string_view image);
// Whether an Error of opening an image is of a mount that is broken, or of a node that lacks something, and
// so of no image.
bool is_of_node(const Error& why);

// What a job's image is to be made of.
struct ImageSource {
  Fd file;
  Fd folder;             // where there is no file
  std::string artifact;  // where there is neither: what a registry has, as a pod would name it
  std::string cvmfs;     // or a path there, which is yet to be opened
  FolderRules rules;
};

// An empty file without a name, in a folder.
Result<Fd> spool_file(const std::string& folder);

// An Error if the image, as a pod names it, is one that was made of somebody's file: who has the file names
// that.
Result<void> refuse_stored(const std::string& image, const std::string& repository);

// A question to image-store that is under way. Destroying it takes it back.
struct StoreQuestion {
  virtual ~StoreQuestion() = default;
};

// An Error if what the store answers is no image of the repository that this pilot knows it by: a job could
// name such an image.
Result<void> check_stored(const std::string& image, const std::string& repository);

// One question to image-store on this machine. Destroying it takes the question back.
class ImageQuestion : public StoreQuestion {
 public:
  // The fact of an Error that the job's user can mend.
  struct UsersFault {};
  struct Asked {
    std::string socket;
    std::string owner;  // for the store's log
    Milliseconds patience;
  };
  // The handler is called once, and never from inside this call. It may destroy the question.
  using Handler = std::function<void(const Result<std::string>&)>;
  static Result<std::unique_ptr<ImageQuestion>> ask(Loop& loop, const Asked& asked, const Fd& file,
                                                    Handler handler);
  ~ImageQuestion() override { loop_.cancel(timer_); }
  ImageQuestion(const ImageQuestion&) = delete;
  ImageQuestion& operator=(const ImageQuestion&) = delete;

 private:
  ImageQuestion(Loop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}
  void take(const wire::Frame& frame);
  void end(const Result<std::string>& image);

  Loop& loop_;
  Handler handler_;
  std::unique_ptr<wire::Channel> channel_;
  Loop::TimerId timer_ = 0;
};

}  // namespace glidepod::agent
