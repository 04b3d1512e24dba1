#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"
#include "lib/condor/image_forms.hpp"
#include "lib/registry/client.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/types.hpp"
#include "pilot-agent/image_rules.hpp"
#include "pilot-agent/image_store.hpp"
#include "pilot-agent/image_upload.hpp"
#include "pilot-agent/opening.hpp"
#include "pilot-agent/settings.hpp"

namespace glidepod::agent {

// Which image a job's name means. Where it is a file, a folder or an artifact of a registry, image-store
// makes an image of it.
class ImageFiles {
 public:
  // Gets the request with its image's name, or why there is none; the fact ImageQuestion::UsersFault of that
  // Error says that the job's user can mend it.
  using Handler = std::function<void(Request request, const Result<void>& brought)>;

  // The fact of an Error of name() that it is the node's fault.
  struct NodesFault {};

  // Loop, settings and registry must outlive it.
  static Result<std::unique_ptr<ImageFiles>> create(Loop& loop, const Settings& settings,
                                                    registry::Client& registry, Handler handler);

  // Sets the request's image; or opens what it is to be made of, and then brings() is true of the client. The
  // launch is that of the request: what such an image runs by itself is in it. An Error without the fact
  // NodesFault is the caller's fault.
  Result<void> name(const wire::Bind& bind, Request& request, wire::Launch& launch);
  bool brings(ClientId client) const { return brought_.contains(client); }
  // Has the image made. The handler is called once, maybe from inside this call, unless forget() or take()
  // comes first.
  void bring(const Request& request);
  void forget(ClientId client) { brought_.erase(client); }
  // Forgets these of the requests whose image is being made, and returns them.
  std::vector<Request> take(const std::function<bool(const Request&)>& which);

  // The image of a registry as the pod names it, where no file may stand for it.
  Result<std::string> registry_image(const std::string& named) const;
  // The same where a file may; none for what stands for a file, or is no name.
  std::optional<Image> image_of_registry(const std::string& named) const;

 private:
  struct Form {
    condor::ImageForm form = condor::ImageForm::registry;
    bool cvmfs = false;
  };
  Form form_of(const std::string& named) const;
  Result<ImageSource> source_of(condor::ImageForm form, const wire::Bind& bind, const std::string& name,
                                uid_t user) const;
  struct Brought {
    Request request;         // once bring() is called
    ImageSource source;      // until the store is asked
    std::string tested_as;   // its key in tested_
    std::string fetched_as;  // of an artifact: its key in fetched_
    Fd spool;                // what of it has come
    std::unique_ptr<Opening> opening;
    std::unique_ptr<registry::Client::Operation> fetching;
    std::unique_ptr<StoreQuestion> question;
  };

  ImageFiles(Loop& loop, const Settings& settings, registry::Client& registry, Handler handler)
      : loop_(loop), settings_(settings), registry_(registry), handler_(std::move(handler)) {}
  void open_cvmfs(const Request& request);
  void copy(const Request& request, ImageSource folder);
  void find_artifact(const Request& request);
  void fetch_artifact(const Request& request, const registry::Descriptor& blob);
  void ask_store(const Request& request, Fd file);
  Result<std::unique_ptr<StoreQuestion>> question_of(const Request& request, Fd file,
                                                     ImageQuestion::Handler handler);
  void end(Request request, const Result<std::string>& image);

  Loop& loop_;
  const Settings& settings_;
  registry::Client& registry_;
  Handler handler_;
  std::vector<ImageRule> rules_;
  std::map<ClientId, Brought> brought_;
  std::map<std::string, std::string> tested_;   // images of files that were tested, until their jobs start
  std::map<std::string, std::string> fetched_;  // images of artifacts, by repository and digest
  std::unique_ptr<ImageUploads> uploads_;       // once it is used
  std::unique_ptr<Inbox> inbox_;
  Workers spooler_{1};  // one at a time, so that little is copied at once; ends before what it uses
};

}  // namespace glidepod::agent
