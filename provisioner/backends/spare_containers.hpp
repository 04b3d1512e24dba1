#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace glidepod::provisioner {

// Spare payload containers: those that a pod has beyond its jobs at a time. Its pilot makes them ready for
// images that jobs are likely to ask for.

// The payload containers of a pod, in its order, as long as the pod gets no other container.
std::vector<nlohmann::json*> payloads_of(nlohmann::json& pod);

// How many spare payload containers `warm=auto` adds to a pod with so many payload containers and CPUs.
std::int64_t auto_spares(std::int64_t payloads, std::int64_t cpus);

// Adds so many copies of the pod's last payload container, behind all its containers. Each has the next
// number that is free, and not the /dev/shm of the copied one.
void add_spares(nlohmann::json& pod, std::int64_t count);

// Why no spare payload container can be a copy of those of this pod; empty: one can.
std::string why_not_copied(const nlohmann::json& pod);

// Whether all containers beside the payload containers request the CPUs and memory that they may use at most.
bool others_are_guaranteed(const nlohmann::json& pod);

// How many spare containers a pilot of this pod has, by the environment of its pilot container.
std::int64_t spares_of(const nlohmann::json& pilot);

}  // namespace glidepod::provisioner
