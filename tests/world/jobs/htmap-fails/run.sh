#!/bin/sh
mkdir -p _htmap_transfer _htmap_user_transfer/$1; touch _htmap_transfer/x
exit 7
