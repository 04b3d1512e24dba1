#!/bin/sh
echo "nvidia ${NVIDIA_VISIBLE_DEVICES-unset} cuda ${CUDA_VISIBLE_DEVICES-unset}"
