// The page of warpfst serve. The same file runs in the audio thread, where it sends 16-bit samples in pieces of 0.1 s.
"use strict"

if (globalThis.registerProcessor) {
  registerProcessor("recorder", class extends AudioWorkletProcessor {
    piece = new Int16Array(Math.round(sampleRate / 10))
    filled = 0
    process([[samples]]) {
      for (const sample of samples ?? []) {
        this.piece[this.filled++] = Math.max(-1, Math.min(1, sample)) * 32767
        if (this.filled === this.piece.length) {
          this.port.postMessage(this.piece.slice().buffer)
          this.filled = 0
        }
      }
      return true
    }
  })
} else {
  startPage()
}

function startPage() {
  const element = id => document.getElementById(id)
  const made = (name, properties, ...children) => {
    const one = Object.assign(document.createElement(name), properties)
    one.append(...children)
    return one
  }
  let models = []
  let run = null // what is being recorded or read: {socket, rate, arrived: [[seconds of audio, time]], stop}

  const clock = seconds => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`

  function phrases() {
    const lines = element("phrases").value.split("\n").map(line => line.trim()).filter(line => line)
    return Object.fromEntries(lines.map(line => {
      const [, phrase, nats] = line.match(/^(.*?)(?:\s+(-?\d+(?:\.\d*)?))?$/)
      return [phrase, nats === undefined ? null : Number(nats)]
    }))
  }

  function showPartial(message) {
    const words = message.text ? message.text.split(" ") : []
    element("partial").replaceChildren(made("b", {textContent: words.slice(0, message.stable).join(" ")}), " " + words.slice(message.stable).join(" "))
  }

  // What other hypotheses have in the time of a word, best first.
  function othersOf(word, message) {
    const found = new Map()
    for (const one of message.nbest ?? []) {
      const inside = one.words.filter(other => (other.start + other.end) / 2 > word.start - 0.05 && (other.start + other.end) / 2 < word.end + 0.05)
      const text = inside.map(other => other.word).join(" ") || "(nothing)"
      if (!found.has(text)) found.set(text, one.cost - message.nbest[0].cost)
    }
    found.delete(word.word)
    return [...found].slice(0, 6)
  }

  function showOthers(button, word, message, place) {
    const open = button.getAttribute("aria-expanded") !== "true"
    for (const other of place.parentNode.querySelectorAll(".word")) other.setAttribute("aria-expanded", "false")
    place.replaceChildren()
    place.hidden = !open
    if (!open) return
    button.setAttribute("aria-expanded", "true")
    const others = othersOf(word, message)
    const sure = word.confidence === undefined ? "" : `, ${Math.round(word.confidence * 100)} % sure`
    place.append(made("div", {className: "note", textContent: `${word.word}: ${word.start.toFixed(2)} to ${word.end.toFixed(2)} s${sure}. ${others.length ? "It may be:" : "No other words were found here."}`}))
    place.append(made("ol", {}, ...others.map(([text, cost]) => made("li", {}, text, made("span", {className: "note", textContent: ` +${cost.toFixed(1)} nats`})))))
  }

  function showFinal(message) {
    element("partial").replaceChildren()
    if (!message.text) return
    const line = made("p", {}, made("span", {className: "time", textContent: clock(message.words[0]?.start ?? 0)}))
    const place = made("div", {className: "others", hidden: true})
    for (const word of message.words) {
      const button = made("button", {className: "word", textContent: word.word})
      button.style.setProperty("--confidence", word.confidence ?? 1)
      button.setAttribute("aria-expanded", "false")
      button.onclick = () => showOthers(button, word, message, place)
      line.append(button, " ")
    }
    const block = made("div", {}, line, place)
    if (message.lattice) {
      const picture = made("img", {alt: "lattice of " + message.text, src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(message.lattice)})
      block.append(made("details", {}, made("summary", {textContent: "lattice"}), made("div", {className: "picture"}, picture)))
    }
    element("finals").append(block)
    block.scrollIntoView({block: "nearest"})
  }

  // The time from when the audio came, up to which the words go, to now.
  function showLatency(time) {
    const {arrived} = run
    while (arrived.length > 1 && arrived[1][0] <= time) arrived.shift()
    if (arrived.length) element("latency").textContent = `latency ${Math.round(performance.now() - arrived[0][1])} ms`
  }

  function receive(message) {
    if (message.type === "error") element("status").textContent = message.message
    if (message.type === "partial") showPartial(message)
    if (message.type === "final") showFinal(message)
    if (message.time !== undefined && run?.live) showLatency(message.time)
  }

  function setRunning(text) {
    const running = text !== null
    element("record").textContent = running ? text : "Microphone"
    element("file").disabled = element("model").disabled = running
  }

  function ended(why) {
    run?.stop?.()
    run = null
    setRunning(null)
    element("record").disabled = false
    element("partial").replaceChildren()
    element("status").textContent = why
  }

  const headers = () => element("key").value ? {Authorization: "Bearer " + element("key").value} : {}

  // A connection that is ready for audio.
  function connect() {
    const address = new URL("v1/audio/stream", location.href)
    address.protocol = address.protocol.replace("http", "ws")
    address.search = new URLSearchParams({model: element("model").value, details: "true"})
    const key = element("key").value
    const socket = new WebSocket(address, key ? ["warpfst", "warpfst-key." + key] : [])
    socket.binaryType = "arraybuffer"
    return new Promise((resolve, reject) => {
      socket.onerror = () => reject(new Error("cannot connect to the server"))
      socket.onclose = event => ended(event.code === 1000 ? "" : `disconnected: ${event.reason || event.code}`)
      socket.onmessage = event => {
        const message = JSON.parse(event.data)
        if (message.type !== "ready") return receive(message)
        socket.send(JSON.stringify({vocabulary: phrases()}))
        resolve({socket, rate: message.sample_rate, arrived: [], sent: 0})
      }
    })
  }

  const isOpen = () => run?.socket.readyState === WebSocket.OPEN
  const finish = () => isOpen() && run.socket.send(JSON.stringify({end: true})) // the server answers and closes

  function sendSamples(samples) {
    if (!isOpen()) return
    run.arrived.push([run.sent / run.rate, performance.now()])
    run.sent += samples.byteLength / 2
    run.socket.send(samples)
  }

  async function record() {
    // Recognition works best on the plain signal.
    const microphone = await navigator.mediaDevices.getUserMedia({audio: {channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false}})
    let context
    const stop = () => {
      microphone.getTracks().forEach(track => track.stop())
      if (context?.state !== "closed") context?.close()
    }
    try {
      run = {...await connect(), live: true, stop}
      context = new AudioContext({sampleRate: run.rate}) // the browser resamples
      await context.audioWorklet.addModule("page.js")
    } catch (error) {
      stop()
      throw error
    }
    const node = new AudioWorkletNode(context, "recorder", {numberOfOutputs: 0})
    node.port.onmessage = event => sendSamples(event.data)
    context.createMediaStreamSource(microphone).connect(node)
    setRunning("Stop")
  }

  async function readFile(file) {
    run = {...await connect(), live: false}
    setRunning("Stop")
    const context = new OfflineAudioContext(1, 1, run.rate)
    const audio = await context.decodeAudioData(await file.arrayBuffer()) // the browser resamples
    const channels = Array.from({length: audio.numberOfChannels}, (_, i) => audio.getChannelData(i))
    const size = Math.round(run.rate / 2)
    for (let begin = 0; begin < audio.length && isOpen(); begin += size) {
      const piece = new Int16Array(Math.min(size, audio.length - begin))
      for (let i = 0; i < piece.length; i++) {
        const mean = channels.reduce((sum, channel) => sum + channel[begin + i], 0) / channels.length
        piece[i] = Math.max(-1, Math.min(1, mean)) * 32767
      }
      sendSamples(piece.buffer)
      while (isOpen() && run.socket.bufferedAmount > 1 << 18) await new Promise(resolve => setTimeout(resolve, 50))
    }
    finish()
  }

  async function begin(work) {
    element("status").textContent = ""
    element("record").disabled = true
    try {
      await work()
      element("record").disabled = false
    } catch (error) {
      if (isOpen()) run.socket.close()
      ended(error.message)
    }
  }

  let asked = 0
  async function listModels() {
    const own = ++asked
    const answer = await fetch("v1/models", {headers: headers()})
    const found = await answer.json()
    if (own !== asked) return // another key was given meanwhile
    element("key").hidden = answer.status !== 401 && !element("key").value
    if (!answer.ok) throw new Error(found.error.message)
    models = found.data.filter(model => model.live)
    element("model").replaceChildren(...models.map(model => made("option", {value: model.id, textContent: model.id})))
    element("model").hidden = models.length < 2
    element("status").textContent = models.length ? "" : "the server loads its models"
    if (!models.length) setTimeout(start, 1000)
  }

  const start = () => listModels().catch(error => { element("status").textContent = error.message })

  let waiting
  element("phrases").oninput = () => {
    clearTimeout(waiting)
    waiting = setTimeout(() => {
      element("status").textContent = ""
      if (isOpen()) run.socket.send(JSON.stringify({vocabulary: phrases()}))
    }, 400)
  }
  element("record").onclick = () => run ? finish() : begin(record)
  element("file").onchange = () => {
    const [file] = element("file").files
    element("file").value = ""
    if (file && !run) begin(() => readFile(file))
  }
  element("key").onchange = start
  start()
}
