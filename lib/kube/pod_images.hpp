#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/kube/client.hpp"

namespace glidepod::kube {

// Changes the images of one pod's containers. Each request tests, together with the change, that the image is
// still the one that the API last showed (JSON Patch, RFC 6902). So if the API gets an abandoned attempt
// after a later change, the attempt finds another image and does nothing. If the image may come back, the
// request tests the pod's version too. No version ever comes back, but every change of the pod makes a new
// one, so this test costs more requests.
class PodImages {
 public:
  using Operation = Client::Operation;

  // The client must outlive this object, and this object its operations.
  PodImages(Client& client, PodName pod) : client_(client), pod_(std::move(pod)) {}

  // Takes the pod as the API shows it; a state older than the known one is ignored. A call is not necessary:
  // a pod that was never seen is asked for, and an outdated state costs two more requests.
  void saw(const Pod& pod);
  struct Wanted {
    std::string container, image;
    bool once = false;  // no container of this pod ever had or will have an image with this name
  };
  // Changes the image, whatever it is now: one that somebody else has set is replaced too. The handler gets
  // the pod with the change, or an Error with a Failure. It is called once, and never from inside this call.
  std::unique_ptr<Operation> change(Wanted wanted, SteadyTime deadline, PodHandler handler);

 private:
  class Change;
  Client& client_;
  PodName pod_;
  std::string version_;
  std::vector<ContainerSpec> containers_;  // in the pod's order
  std::map<std::string, std::string>
      once_;  // the images of containers that never get that image again, by container
};

}  // namespace glidepod::kube
