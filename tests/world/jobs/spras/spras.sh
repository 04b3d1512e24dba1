#!/bin/sh
mkdir output
