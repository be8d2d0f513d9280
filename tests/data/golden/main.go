// SPDX-License-Identifier: Apache-2.0

// Command golden writes what Kubernetes' own code answers, so that the Python tests can compare.
//
// go run . quantities > quantities.json; go run . pods > pod_requests.json
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

var random = rand.New(rand.NewSource(20260101))

type parsed struct {
	Text      string `json:"text"`
	Error     bool   `json:"error,omitempty"`
	Canonical string `json:"canonical,omitempty"`
	Ceil      string `json:"ceil,omitempty"`
}

type formatted struct {
	Number  string `json:"number"`
	Decimal string `json:"decimal"`
	Binary  string `json:"binary"`
}

func number() string {
	digits := 1 + random.Intn(9)
	text := ""
	for range digits {
		text += string(rune('0' + random.Intn(10)))
	}
	switch random.Intn(4) {
	case 0:
		return text + "." + strconv.Itoa(random.Intn(1000))
	case 1:
		return text + "."
	case 2:
		return "." + text
	}
	return text
}

func texts() []string {
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e3", "E3", "e+3", "e-3", "E0", "e9", "K", "g", "gi", "i", "B", "KB", "KiB", "ee3", "e", "e3.5", "e3k", " k", "m ", "\u0663"}
	list := []string{"", "0", "00", "-0", "+0", "-", "+", "--1", "+-1", "1e", "1E", "0x10", "1_000", "1,5", "NaN", "Inf", "\u0661", "1..2", "1.2.3"}
	for range 700 {
		text := []string{"", "", "", "-", "+"}[random.Intn(5)] + number()
		list = append(list, text+suffixes[random.Intn(len(suffixes))])
	}
	return list
}

func quantities() any {
	parse := []parsed{}
	for _, text := range texts() {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			parse = append(parse, parsed{Text: text, Error: true})
			continue
		}
		ceil := ""
		if value := quantity.Value(); quantity.CmpInt64(1<<62) < 0 && quantity.CmpInt64(-(1<<62)) > 0 {
			ceil = strconv.FormatInt(value, 10)
		}
		parse = append(parse, parsed{Text: text, Canonical: quantity.String(), Ceil: ceil})
	}
	format := []formatted{}
	add := func(value int64) {
		format = append(format, formatted{
			Number:  strconv.FormatInt(value, 10),
			Decimal: resource.NewQuantity(value, resource.DecimalSI).String(),
			Binary:  resource.NewQuantity(value, resource.BinarySI).String(),
		})
	}
	for shift := range 63 {
		for delta := int64(-1); delta <= 1; delta++ {
			add(int64(1)<<shift + delta)
			add(-(int64(1)<<shift + delta))
		}
	}
	for power := int64(1); power < 1e18; power *= 10 {
		add(power)
		add(power * 5)
		add(power + 1)
		add(-power)
	}
	add(1<<63 - 1)
	for range 400 {
		value := random.Int63() >> random.Intn(63)
		for range random.Intn(4) {
			if value < 1<<50 {
				value *= []int64{1000, 1024, 1, 10}[random.Intn(4)]
			}
		}
		add(value)
	}
	return map[string]any{"parse": parse, "format": format}
}

type container struct {
	Request string `json:"request"`
	Sidecar bool   `json:"sidecar,omitempty"`
}

type pod struct {
	Containers []container `json:"containers"`
	Init       []container `json:"init"`
	Overhead   string      `json:"overhead"`
	Expected   int64       `json:"expected"`
}

const batchCPU = v1.ResourceName("kubernetes.io/batch-cpu")

func request() string {
	return []string{"", "0", "1", "500", "1500m", "2k", "250m", "3k", "0.5", "7001"}[random.Intn(10)]
}

func list(text string) v1.ResourceList {
	if text == "" {
		return v1.ResourceList{}
	}
	return v1.ResourceList{batchCPU: resource.MustParse(text)}
}

func made(ours container) v1.Container {
	made := v1.Container{Resources: v1.ResourceRequirements{Requests: list(ours.Request)}}
	if ours.Sidecar {
		always := v1.ContainerRestartPolicyAlways
		made.RestartPolicy = &always
	}
	return made
}

func pods() any {
	result := []pod{}
	for range 500 {
		ours := pod{Containers: []container{}, Init: []container{}}
		theirs := v1.Pod{}
		for range 1 + random.Intn(3) {
			ours.Containers = append(ours.Containers, container{Request: request()})
		}
		for range random.Intn(5) {
			ours.Init = append(ours.Init, container{Request: request(), Sidecar: random.Intn(2) == 0})
		}
		if random.Intn(3) == 0 {
			ours.Overhead = request()
		}
		for _, each := range ours.Containers {
			theirs.Spec.Containers = append(theirs.Spec.Containers, made(each))
		}
		for _, each := range ours.Init {
			theirs.Spec.InitContainers = append(theirs.Spec.InitContainers, made(each))
		}
		theirs.Spec.Overhead = list(ours.Overhead)
		total := helpers.PodRequests(&theirs, helpers.PodResourcesOptions{})[batchCPU]
		ours.Expected = total.Value()
		result = append(result, ours)
	}
	return result
}

func main() {
	value := map[string]func() any{"quantities": quantities, "pods": pods}[os.Args[1]]()
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
